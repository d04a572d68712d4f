// What a viewer of video saw, as Common Media Client Data (CMCD, CTA-5004): on requests, by the
// player's own support of version 1; and in reports of version 2's event mode, which have what
// requests lack: startup time, stalls with their length, and the bitrate that was shown.

/** The keys that the player adds to its requests. */
const REQUEST_KEYS = ["bl", "br", "bs", "d", "ot", "sf", "sid", "st", "su"];
/** Between reports while nothing happens, by default. */
const INTERVAL_MS = 10_000;
/** Reports that wait for a network that is gone; the oldest go first. */
const WAITING_MAX = 200;
const TYPE = "application/cmcd";

/** Also for pages without TLS, which have no `crypto.randomUUID`. */
const randomId = () =>
  [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");

/**
 * Watches a media element from now on.
 *
 * @param {HTMLMediaElement} video
 * @param {import("./trimtab-cmcd.d.ts").Options} options
 */
export function watch(video, options) {
  return new Session(video, options);
}

export class Session {
  #video;
  #url;
  #detach = new AbortController();
  #timer;
  #state = "d";
  #wanted_ms = null;
  #startup_ms = null;
  #stalls = 0;
  #stalled_ms = 0;
  #stalls_since_ms = null;
  #kbps = null;
  #number = 0;
  #is_startup_sent = false;
  #waiting = [];
  #is_sending = false;

  constructor(video, { url, sessionId = randomId(), intervalMs = INTERVAL_MS } = {}) {
    if (!url) throw new TypeError("watch() needs { url }: where reports are posted");
    if (!(intervalMs >= 1000)) throw new TypeError("intervalMs: 1000 or more");
    this.#video = video;
    this.#url = new URL(url, document.baseURI);
    this.id = sessionId;
    const on = (target, name, react) =>
      target.addEventListener(name, react, { signal: this.#detach.signal });
    on(video, "play", () => this.#begin());
    on(video, "playing", () => this.#play());
    on(video, "waiting", () => this.#wait());
    on(video, "seeking", () => this.#turn(this.#startup_ms === null ? this.#state : "k"));
    on(video, "seeked", () => video.paused && this.#startup_ms !== null && this.#turn("a"));
    on(video, "pause", () => video.ended || this.#turn("a"));
    on(video, "ended", () => this.#turn("e"));
    on(video, "error", () => this.#turn("f"));
    // A page that is hidden may never be shown again, and then nothing else tells.
    const hide = () => document.visibilityState === "hidden" && this.#leave("t");
    on(document, "visibilitychange", hide);
    on(window, "pagehide", () => this.#quit());
    this.#timer = setInterval(() => this.#report("t"), intervalMs);
    // An element that plays by itself tells when it has enough, and not when the wait begins.
    if (video.autoplay || !video.paused) this.#begin();
  }

  /** What the session showed until now. */
  get shown() {
    return {
      state: this.#state,
      startupMs: this.#startup_ms,
      stalls: this.#stalls,
      stalledMs: this.#stalled(),
      kbps: this.#kbps,
      reports: this.#number,
    };
  }

  /** For the configuration of hls.js: `new Hls({ cmcd: session.hlsConfig() })`. */
  hlsConfig() {
    return { sessionId: this.id, includeKeys: [...REQUEST_KEYS] };
  }

  /** Follows the bitrates and errors of hls.js. */
  attachHls(hls) {
    const shown = (_, { level }) => this.#show(hls.levels[level]?.bitrate / 1000);
    const failed = (_, { fatal }) => fatal && this.#turn("f");
    hls.on("hlsLevelSwitched", shown);
    hls.on("hlsError", failed);
    this.#detach.signal.addEventListener("abort", () => {
      hls.off("hlsLevelSwitched", shown);
      hls.off("hlsError", failed);
    });
    return this;
  }

  /** Switches on CMCD in dash.js, before it has a source, and follows its bitrates and errors. */
  attachDash(player) {
    const cmcd = { enabled: true, version: 1, sid: this.id, enabledKeys: [...REQUEST_KEYS] };
    player.updateSettings({ streaming: { cmcd } });
    const rate = (type) => player.getCurrentRepresentationForType(type)?.bitrateInKbit;
    const current = () => this.#kbps ?? this.#show(rate("video") ?? rate("audio"));
    const shown = ({ mediaType, newRepresentation }) =>
      mediaType === "video" && this.#show(newRepresentation?.bitrateInKbit);
    const failed = () => this.#turn("f");
    player.on("playbackPlaying", current);
    player.on("qualityChangeRendered", shown);
    player.on("error", failed);
    this.#detach.signal.addEventListener("abort", () => {
      player.off("playbackPlaying", current);
      player.off("qualityChangeRendered", shown);
      player.off("error", failed);
    });
    return this;
  }

  /** The viewer is done with it: sends the last report, and watches no longer. */
  end() {
    this.#quit();
    this.#detach.abort();
    clearInterval(this.#timer);
  }

  #begin() {
    this.#wanted_ms ??= performance.now();
    if (this.#startup_ms === null) this.#turn("s");
  }

  #play() {
    this.#wanted_ms ??= performance.now();
    this.#startup_ms ??= performance.now() - this.#wanted_ms;
    this.#turn("p");
  }

  #wait() {
    if (this.#startup_ms === null || this.#video.seeking || this.#state === "r") return;
    this.#stalls += 1;
    this.#stalls_since_ms = performance.now();
    this.#turn("r");
  }

  #stalled() {
    const since = this.#stalls_since_ms;
    return this.#stalled_ms + (since === null ? 0 : performance.now() - since);
  }

  #turn(state) {
    if (state === this.#state) return;
    if (state !== "r") {
      this.#stalled_ms = this.#stalled();
      this.#stalls_since_ms = null;
    }
    this.#state = state;
    this.#report("ps");
  }

  #show(kbps) {
    if (!(kbps > 0) || kbps === this.#kbps) return;
    this.#kbps = kbps;
    this.#report("bc");
  }

  #quit() {
    if (!"efq".includes(this.#state)) {
      this.#stalled_ms = this.#stalled();
      this.#stalls_since_ms = null;
      this.#state = "q";
      this.#leave("ps");
    } else {
      this.#beacon();
    }
  }

  /** The last chance to send, perhaps: a beacon goes on when the page does not. */
  #leave(event) {
    this.#note(event);
    this.#beacon();
  }

  #report(event) {
    this.#note(event);
    this.#send();
  }

  /** Writes a report, in the order of keys. */
  #note(event) {
    const keys = {
      bsa: `(${this.#stalls})`,
      bsda: `(${Math.round(this.#stalled())})`,
      e: event,
      pb: this.#kbps === null ? null : `(${Math.round(this.#kbps)})`,
      sid: `"${this.id}"`,
      sn: this.#number,
      sta: this.#state,
      ts: Math.round(performance.timeOrigin + performance.now()),
      v: 2,
    };
    // Once in a session.
    if (this.#startup_ms !== null && !this.#is_startup_sent) {
      keys.msd = Math.round(this.#startup_ms);
      this.#is_startup_sent = true;
    }
    const known = Object.entries(keys).filter(([, value]) => value !== null).sort();
    this.#waiting.push(known.map(([key, value]) => `${key}=${value}`).join(","));
    this.#number += 1;
    if (this.#waiting.length > WAITING_MAX) this.#waiting.shift();
  }

  /** Sends what waits, one post after the other. What fails waits for the next report. */
  async #send() {
    if (this.#is_sending) return;
    this.#is_sending = true;
    try {
      while (this.#waiting.length) {
        const lines = this.#waiting.slice();
        const answer = await fetch(this.#url, {
          method: "POST",
          headers: { "Content-Type": TYPE },
          body: lines.join("\n") + "\n",
          credentials: "omit",
          keepalive: true,
        });
        // 410: nobody wants them. 400 and the like: they would be refused again.
        if (answer.status === 410) this.end();
        if (answer.status === 429 || answer.status >= 500) break;
        this.#waiting = this.#waiting.filter((line) => !lines.includes(line));
      }
    } catch {
      // Without a network they wait.
    } finally {
      this.#is_sending = false;
    }
  }

  #beacon() {
    if (!this.#waiting.length) return;
    // What needs no question before it: a page that ends gets no answer to one.
    const type = this.#url.origin === location.origin ? TYPE : "text/plain";
    const body = new Blob([this.#waiting.join("\n") + "\n"], { type });
    // A post that is under way has some of them, too: the receiver goes by their numbers.
    if (navigator.sendBeacon(this.#url, body)) this.#waiting = [];
  }
}
