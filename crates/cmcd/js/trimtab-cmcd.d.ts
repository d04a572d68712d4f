/** Where reports go, and how often. */
export interface Options {
  /** Where reports are posted; relative to the page, or of another origin. */
  url: string | URL;
  /** The session, at most 64 characters. Default: a random one. */
  sessionId?: string;
  /** Milliseconds between reports while nothing happens, 1000 or more. Default: 10000. */
  intervalMs?: number;
}

/** What a session showed until now. */
export interface Shown {
  /** As CMCD's `sta`: d(preloading), s(tarting), p(laying), k (seeking), r(ebuffering), a (paused),
   * e(nded), f(ailed), q(uit). */
  state: "d" | "s" | "p" | "k" | "r" | "a" | "e" | "f" | "q";
  /** Milliseconds from the wish to play until the first picture; null before it. */
  startupMs: number | null;
  /** How often playback stood still. */
  stalls: number;
  /** Milliseconds that it stood still, in all. */
  stalledMs: number;
  /** Bitrate of what is shown, in kbit/s; null before it is known. */
  kbps: number | null;
  /** Reports until now. */
  reports: number;
}

/** The part of hls.js that is used. */
export interface HlsLike {
  levels: { bitrate: number }[];
  on(event: string, listener: (name: string, data: any) => void): void;
  off(event: string, listener: (name: string, data: any) => void): void;
}

/** The part of dash.js that is used. */
export interface DashLike {
  updateSettings(settings: object): void;
  getCurrentRepresentationForType(type: string): { bitrateInKbit: number } | null;
  on(event: string, listener: (data: any) => void): void;
  off(event: string, listener: (data: any) => void): void;
}

/** One playback of one video. */
export declare class Session {
  constructor(video: HTMLMediaElement, options: Options);
  /** CMCD's `sid`. */
  readonly id: string;
  readonly shown: Shown;
  /** For `new Hls({ cmcd: session.hlsConfig() })`. */
  hlsConfig(): { sessionId: string; includeKeys: any[] };
  /** Follows the bitrates and errors of hls.js. */
  attachHls(hls: HlsLike): this;
  /** Switches on CMCD in dash.js, before it has a source, and follows its bitrates and errors. */
  attachDash(player: DashLike): this;
  /** The viewer is done with it: sends the last report, and watches no longer. */
  end(): void;
}

/** Watches a media element from now on. */
export declare function watch(video: HTMLMediaElement, options: Options): Session;
