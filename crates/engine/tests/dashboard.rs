//! The dashboard in a real browser, by keyboard alone and without any network but the engine.
//!
//! `TRIMTAB_PICTURES=FOLDER` makes it wait for more decisions, and leaves pictures of the pages there.

#[path = "common/browser.rs"]
mod browser;
mod common;

use std::path::PathBuf;
use std::time::Duration;

use browser::Browser;
use trimtab_fleet_client::{Action, Hold, Name, NewRollout, OrderBody};

use common::{Process, Site, batch, now_ms, report};
use serde_json::json;
use trimtab_fleet_client::experiment::{Arm, Design, Phase};

const SUBNETS: [&str; 4] = ["198.51.100.0/24", "203.0.113.0/24", "203.0.114.0/24", "2001:db8::/48"];

#[test]
fn engine_process() {
    common::run_if_asked();
}

fn name(prefix: &str) -> Name {
    Name { service: "tv".to_owned(), prefix: prefix.to_owned() }
}

/// A second of reports for each aggregate, better where the knob `gamma` is near 100.
fn serve_traffic(engine: &Process, site: &Site, seconds: std::ops::Range<u64>) {
    for second in seconds {
        let reports = SUBNETS.map(|prefix| {
            let found = engine.client(&site.viewer).aggregate(&name(prefix)).ok();
            let gamma = found.as_ref().and_then(|one| one.configuration["knobs"]["gamma"].as_f64());
            let throughput = 10.0 - (gamma.unwrap_or(1.0).log10() - 2.0).abs();
            let version = found.map_or(0, |one| one.version);
            report(&format!("tv/{prefix}"), (now_ms() / 1000) as u64, version, throughput)
        });
        engine.client(&site.edge).report(&batch(second, reports.to_vec())).expect("it is there");
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// On a phone of 390 px: nothing sticks out, no text is tiny, and no row is mostly blank.
fn fits_a_phone(browser: &mut Browser, picture: Option<&std::path::Path>) {
    let phone = json!({ "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": false });
    browser.tell("Emulation.setDeviceMetricsOverride", &phone);
    browser.until("innerWidth === 390");
    if let Some(file) = picture {
        browser.picture(file);
    }
    let wide = browser.value(
        "[...document.querySelectorAll('main *')].filter((one) => {
            const box = one.getBoundingClientRect();
            const hidden = one.closest('svg, thead');
            return box.width > 0 && (box.right > 391 || box.left < -1) && !hidden;
        }).map((one) => one.outerHTML.slice(0, 80))",
    );
    assert_eq!(wide, json!([]), "sticks out");
    assert_eq!(browser.value("document.documentElement.scrollWidth <= 390"), json!(true));
    let cut = browser.value(
        "[...document.querySelectorAll('main svg text')].filter((text) => {
            const [box, all] = [text, text.closest('svg')].map((one) => one.getBoundingClientRect());
            return box.left < all.left - 1 || box.right > all.right + 1;
        }).map((text) => text.textContent)",
    );
    assert_eq!(cut, json!([]), "labels that are cut");
    let least = browser.value(
        "Math.min(...[...document.querySelectorAll('main svg text, main .axis, main p, main dd, tbody td')]
            .filter((one) => one.textContent.trim() !== '')
            .map((one) => one.closest('svg')
                ? one.getBoundingClientRect().height / 1.15
                : parseFloat(getComputedStyle(one).fontSize)))",
    );
    assert!(least.as_f64().is_some_and(|px| px >= 10.0), "text of {least} px");
    // A row is its lines of text: at most twice as high as they are.
    let blank = browser.value(
        "[...document.querySelectorAll('tbody tr')].filter((row) => {
            const texts = [...row.children].filter((cell) => cell.textContent.trim() !== '');
            const lines = texts.map((cell) => {
                const range = document.createRange();
                range.selectNodeContents(cell);
                return range.getBoundingClientRect().height;
            });
            return row.getBoundingClientRect().height > 2 * lines.reduce((a, b) => a + b, 24);
        }).length",
    );
    assert_eq!(blank, json!(0), "rows that are mostly blank");
    browser.tell("Emulation.clearDeviceMetricsOverride", &json!({}));
}

/// Goes to a page by the links at the top.
fn go_to(browser: &mut Browser, page: &str) {
    browser.value("document.body.focus(); document.querySelector('.skip').focus()");
    browser.tab_to(&format!("at.textContent === '{page}' && at.closest('nav') !== null"));
    browser.press("Enter");
}

/// Every text stands out from what is behind it: WCAG 2.2, 1.4.3 asks for 4.5 to 1.
fn is_legible(browser: &mut Browser) {
    let faint = browser.value(
        "(() => {
            const parts = (color) => color.match(/[\\d.]+/g).map(Number);
            const light = (color) => {
                const [r, g, b] = parts(color).map((v) => v / 255)
                    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const ground = (one) => {
                const color = getComputedStyle(one).backgroundColor;
                return parts(color)[3] === 0 ? ground(one.parentElement) : color;
            };
            const own = (one) => [...one.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
            return [...document.querySelectorAll('header *, main *')]
                .filter((one) => own(one) && one.getBoundingClientRect().width > 0 && !one.closest('svg'))
                .filter((one) => {
                    const [a, b] = [light(getComputedStyle(one).color), light(ground(one))];
                    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
                })
                .map((one) => one.outerHTML.slice(0, 80));
        })()",
    );
    assert_eq!(faint, json!([]), "hard to read");
}

/// The first page: what each service runs, tries, gains and holds, at both widths, light and dark.
fn overview_at_a_glance(browser: &mut Browser, pictures: Option<&std::path::Path>) {
    browser.until("document.querySelectorAll('section.service').length === 2");
    let text = "document.querySelector('section.service[aria-label=tv]').innerText";
    for said in [
        "Learnt vs. the safe configuration",
        "A decision for each aggregate every 1 s",
        "Reward: mean(throughput)",
        "vivace, bbr, copa:mvfst; no experiment and no rollout",
        "nobody within a day",
    ] {
        browser.until(&format!("{text}.includes('{said}')"));
    }
    // The bar has a part for each that the words name, as wide as they say.
    let parts = browser.value(
        "[...document.querySelectorAll('section.service[aria-label=tv] .share .part')]
            .map((part) => [Number(part.dataset.share), part.getBoundingClientRect().width])",
    );
    let parts: Vec<(f64, f64)> = serde_json::from_value(parts).expect("numbers");
    assert_eq!(parts.iter().map(|part| part.0).sum::<f64>(), SUBNETS.len() as f64);
    let widths: f64 = parts.iter().map(|part| part.1).sum();
    for (count, width) in parts {
        assert!((width / widths - count / SUBNETS.len() as f64).abs() < 0.02, "{count} {width}");
    }
    browser.until(
        "document.querySelector('section.service[aria-label=vod]').innerText.includes('no edge has reported')",
    );
    is_legible(browser);
    let dark = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    browser.tell("Emulation.setEmulatedMedia", &dark);
    is_legible(browser);
    if let Some(folder) = pictures {
        browser.picture(&folder.join("engine-overview-dark.png"));
    }
    browser.tell("Emulation.setEmulatedMedia", &json!({ "features": [] }));
    let file = pictures.map(|folder| folder.join("engine-overview-phone.png"));
    fits_a_phone(browser, file.as_deref());
}

/// Begins the experiment `safe-or-not` in its dialog; a knob without a value is refused there.
fn begin_by_keyboard(browser: &mut Browser) {
    go_to(browser, "Experiments");
    browser.tab_to("at.textContent === 'New experiment…'");
    browser.press("Enter");
    browser.until("document.activeElement?.name === 'name'");
    browser.write("safe-or-not");
    browser.tab_to("at.name === 'treatment'");
    browser.write("gamma=");
    browser.tab_to("at.name === 'length'");
    browser.value("document.activeElement.select()");
    browser.write("24");
    browser.tab_to("at.name === 'guards'");
    browser.write("mean(throughput) > -50%");
    browser.tab_to("at.name === 'reason'");
    browser.press("Enter");
    browser.until("document.querySelector('dialog [role=alert]').textContent.includes('write e.g. gamma=900')");
    browser.value("document.querySelector('dialog input[name=treatment]').focus()");
    browser.value("document.activeElement.select()");
    browser.write("safe");
    browser.press("Enter");
    browser.until("document.querySelector('h2')?.textContent.startsWith('tv: safe-or-not')");
}

/// Makes a token, whose secret is shown once and works, and revokes it.
fn tokens_by_keyboard(browser: &mut Browser, engine: &Process) {
    go_to(browser, "Tokens");
    browser.until("document.querySelectorAll('tbody tr').length === 3");
    fits_a_phone(browser, None);
    browser.tab_to("at.textContent === 'New token…'");
    browser.press("Enter");
    browser.until("document.activeElement?.name === 'name'");
    browser.write("sam");
    browser.press("Enter");
    browser.until("document.querySelector('dialog .secret') !== null");
    let secret = browser.value("document.querySelector('dialog .secret').value");
    let sam = engine.client(secret.as_str().expect("a secret"));
    assert_eq!(sam.status().expect("it is valid").role, trimtab_fleet_client::Role::Viewer);
    browser.tab_to("at.textContent === 'Done'");
    browser.press("Enter");
    browser.until("document.querySelectorAll('tbody tr').length === 4");
    let shown = browser.value("document.documentElement.outerHTML");
    assert!(!shown.as_str().expect("a page").contains(secret.as_str().expect("a secret")), "once");
    browser.tab_to("at.textContent === 'Revoke' && at.closest('tr').textContent.startsWith('sam')");
    browser.press("Enter");
    browser.tab_to("at.textContent === 'Yes'");
    browser.press("Enter");
    browser.until("document.querySelector('.hold.revoked') !== null");
    assert!(sam.status().is_err(), "it is revoked");
}

/// Opens an experiment or a rollout from the list, which has so many rows.
fn open_study(browser: &mut Browser, name: &str, rows: usize) {
    go_to(browser, "Experiments");
    browser.until(&format!("document.querySelectorAll('tbody tr').length === {rows}"));
    browser.tab_to(&format!("at.textContent === '{name}'"));
    browser.press("Enter");
}

/// An experiment and a rollout: found in their lists, shown with their figures, held and stopped.
fn experiments_by_keyboard(
    browser: &mut Browser,
    engine: &Process,
    site: &Site,
    pictures: Option<&std::path::Path>,
) {
    // One was pinned before, which the overview says, and at least four have to learn.
    go_to(browser, "Overview");
    let held = format!("'{} pinned by kim, '", SUBNETS[1]);
    browser.until(&format!(
        "document.querySelector('section.service[aria-label=tv]')?.innerText.includes({held})"
    ));
    let client = engine.client(&site.operator);
    let (service, prefix) = ("tv".to_owned(), SUBNETS[1].to_owned());
    let resume = OrderBody {
        service: service.clone(),
        prefix,
        action: Action::Resume,
        version: None,
        knobs: None,
        interval: None,
        reason: String::new(),
    };
    client.order(&resume).expect("it learns again");
    begin_by_keyboard(browser);
    let begun = client.experiment("tv", "safe-or-not").expect("it is there");
    assert_eq!((&begun.spec.control, &begun.spec.treatment), (&Arm::Learn, &Arm::Safe));
    assert_eq!((begun.spec.design, begun.spec.length), (Design::Prefixes { share: 0.5 }, 24));
    let seconds = if pictures.is_some() { 18 } else { 8 };
    serve_traffic(engine, site, 1000..1000 + seconds);
    go_to(browser, "Overview");
    browser.until(
        "document.querySelector('section.service[aria-label=tv]')?.innerText
            .includes('safe-or-not (experiment): safe vs. learn')",
    );
    if let Some(folder) = pictures {
        browser.picture(&folder.join("engine-overview.png"));
    }
    open_study(browser, "safe-or-not", 1);
    browser.until("document.querySelector('h2')?.textContent === 'tv: safe-or-not running'");
    // Both arms over time, the effect with its interval, and the guard with its own.
    browser.until("document.querySelectorAll('svg .curve').length === 2");
    browser.until("document.querySelectorAll('svg .dot.treatment').length > 2");
    browser.until("document.querySelector('svg[aria-label^=\"The effect is\"] .reach') !== null");
    browser.until("document.querySelector('.verdict').textContent.includes('It is not over')");
    browser.until("document.querySelectorAll('tbody .hold').length === 1");
    if let Some(folder) = pictures {
        browser.picture(&folder.join("engine-experiment.png"));
    }
    browser.tab_to("at.textContent === 'Stop'");
    browser.press("Enter");
    browser.tab_to("at.textContent === 'Yes'");
    browser.press("Enter");
    browser.until("document.querySelector('h2 .hold')?.textContent === 'stopped'");
    let shown = client.experiment("tv", "safe-or-not").expect("it is there");
    assert_eq!(shown.stopped.as_deref(), Some("kim: in the dashboard"));

    let rollout = NewRollout {
        service,
        name: "safe-for-all".to_owned(),
        from: None,
        to: Arm::Safe,
        stages: None,
        intervals: None,
        wash_out: None,
        metric: "reward".to_owned(),
        guards: vec!["mean(throughput) > -50%".to_owned()],
        seed: None,
        reason: String::new(),
    };
    client.begin_rollout(&rollout).expect("it begins");
    open_study(browser, "safe-for-all", 2);
    browser.until("document.querySelectorAll('.stages li').length === 5");
    browser.until("document.querySelector('.stages [aria-current=step]').textContent === 'before'");
    browser.tab_to("at.textContent === 'Hold'");
    browser.press("Enter");
    browser.tab_to("at.textContent === 'Yes'");
    browser.press("Enter");
    browser.until("document.querySelector('h2 .hold')?.textContent === 'held'");
    assert_eq!(client.rollout("tv", "safe-for-all").expect("it is there").phase, Phase::Held);
    if let Some(folder) = pictures {
        browser.picture(&folder.join("engine-rollout.png"));
    }
}

/// One row that cannot be read takes no other off the list.
fn a_damaged_row_is_named(browser: &mut Browser, site: &Site) {
    let db = rusqlite::Connection::open(site.folder.path().join("engine.db")).expect("the store");
    db.busy_timeout(Duration::from_secs(10)).expect("it waits");
    let damage = format!("UPDATE aggregates SET hold = 'x' WHERE prefix = '{}'", SUBNETS[2]);
    assert_eq!(db.execute(&damage, []).expect("it may be written"), 1);
    go_to(browser, "Aggregates");
    browser.press("/");
    browser.until("document.activeElement?.id === 'search'");
    browser.value("document.activeElement.select()");
    browser.write("203.0.11");
    browser.until("document.querySelector('main [role=alert]') !== null");
    browser.until("document.querySelector('tbody').textContent.includes('203.0.113.0/24')");
    let alert = browser.value("document.querySelector('main [role=alert]').textContent");
    let alert = alert.as_str().expect("a text");
    assert!(alert.starts_with("Damaged: tv to 203.0.114.0/24: its row is nothing"), "{alert}");
    is_legible(browser);
}

/// The button that makes everything safe, its dialog that asks why, and the banner that ends it.
fn everything_safe_by_keyboard(
    browser: &mut Browser,
    engine: &Process,
    site: &Site,
    pictures: Option<&std::path::Path>,
) {
    let viewer = engine.client(&site.viewer);
    browser.value("document.body.focus(); document.querySelector('.skip').focus()");
    browser.tab_to("at.textContent === 'Everything safe…'");
    browser.press("Enter");
    browser.until("document.activeElement?.name === 'why'");
    // Without a reason nothing is done.
    browser.press("Enter");
    browser.until("document.querySelector('dialog input[name=why]:invalid') !== null");
    assert_eq!(viewer.status().expect("it answers").safe, []);
    browser.write("trouble at the peer");
    browser.press("Enter");
    browser.until("document.querySelector('dialog') === null");
    browser.until(
        "document.getElementById('safe').textContent.includes('by order of kim: trouble at the peer')",
    );
    browser.until("document.getElementById('make-safe').hidden");
    assert_eq!(viewer.status().expect("it answers").safe[0].service, None);
    assert!(viewer.aggregate(&name(SUBNETS[1])).expect("it is there").safe);
    if let Some(folder) = pictures {
        browser.picture(&folder.join("engine-safe.png"));
    }
    let phone = json!({ "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": false });
    browser.tell("Emulation.setDeviceMetricsOverride", &phone);
    browser.until("innerWidth === 390");
    let right = browser.value(
        "Math.max(...[...document.querySelectorAll('#safe *')].map((one) => one.getBoundingClientRect().right))",
    );
    assert!(right.as_f64().is_some_and(|right| right > 100.0 && right <= 390.0), "{right}");
    browser.tell("Emulation.clearDeviceMetricsOverride", &json!({}));
    browser.tab_to("at.textContent === 'End this order'");
    browser.press("Enter");
    browser.tab_to("at.textContent === 'Yes'");
    browser.press("Enter");
    browser.until("document.getElementById('safe').hidden");
    assert_eq!(viewer.status().expect("it answers").safe, []);
}

#[test]
fn aggregates_are_found_explained_and_paused_by_keyboard() {
    let Some(mut browser) = Browser::start() else { return };
    let pictures = std::env::var_os("TRIMTAB_PICTURES").map(PathBuf::from);
    let site = Site::new("");
    site.choose_among("others = [\"bbr\", \"copa:mvfst\"]");
    let engine = site.start();
    serve_traffic(&engine, &site, 1..if pictures.is_some() { 91 } else { 6 });

    browser.tell("Page.navigate", &json!({ "url": engine.url }));
    browser.until("document.activeElement?.id === 'token'");
    browser.write("trimtab_nonsense");
    browser.press("Enter");
    browser.until(
        "document.getElementById('message').textContent.includes('no token of this engine')",
    );
    browser.until("document.activeElement?.id === 'token' && document.activeElement.value === ''");
    browser.write(&site.operator);
    browser.press("Enter");
    overview_at_a_glance(&mut browser, pictures.as_deref());

    // The search is a key away, and shows what it finds while one types.
    browser.press("/");
    browser.until("document.activeElement?.id === 'search'");
    browser.until("document.querySelectorAll('tbody tr').length === 4");
    if let Some(folder) = &pictures {
        browser.picture(&folder.join("engine-list.png"));
    }
    browser.write("203.0.113");
    browser.until("document.querySelectorAll('tbody tr').length === 1");
    browser.tab_to("at.textContent === '203.0.113.0/24'");
    browser.press("Enter");
    browser.until("document.querySelector('h2')?.textContent.startsWith('tv to 203.0.113.0/24')");
    // The reward and both knobs, with values and a change marked; and each decision with its reason.
    browser.until("document.querySelectorAll('svg[role=img]').length === 3");
    browser
        .until("[...document.querySelectorAll('svg')].every((svg) => svg.querySelector('circle'))");
    browser.until("document.querySelectorAll('svg')[0].querySelector('.mark') !== null");
    browser.until("/Reward \\d/.test(document.querySelector('tbody').textContent)");
    if let Some(folder) = &pictures {
        browser.picture(&folder.join("engine-aggregate.png"));
    }
    let file = pictures.as_ref().map(|folder| folder.join("engine-aggregate-phone.png"));
    fits_a_phone(&mut browser, file.as_deref());

    browser.tab_to("at.textContent === 'Pause'");
    browser.press("Enter");
    browser.until("document.querySelector('dialog[open]') !== null");
    browser.tab_to("at.textContent === 'Yes'");
    browser.press("Enter");
    browser.until("document.querySelector('h2 .hold')?.textContent === 'paused'");
    let client = engine.client(&site.viewer);
    assert_eq!(client.aggregate(&name(SUBNETS[1])).unwrap().hold, Hold::Paused);

    browser.tab_to("at.textContent === 'Pin…'");
    browser.press("Enter");
    browser.until("document.querySelector('dialog[open] input[name=gamma]') !== null");
    browser.value("document.querySelector('dialog input[name=gamma]').focus()");
    browser.value("document.activeElement.select()");
    browser.write("77");
    browser.press("Enter");
    browser.until("document.querySelector('h2 .hold')?.textContent === 'pinned'");
    let pinned = client.aggregate(&name(SUBNETS[1])).unwrap();
    assert_eq!(pinned.configuration["knobs"]["gamma"].as_f64().map(f64::round), Some(77.0));

    // Another algorithm has no knobs to set. Its first letter chooses it.
    browser.tab_to("at.textContent === 'Pin…'");
    browser.press("Enter");
    browser.until("document.querySelector('dialog[open] select[name=algorithm]') !== null");
    browser.tab_to("at.name === 'algorithm'");
    browser.press("c");
    browser.until("document.querySelector('dialog input[name=gamma]').disabled");
    browser.tab_to("at.textContent === 'Pin'");
    browser.press("Enter");
    browser.until("/ of copa: .*delta 0.04/.test(document.querySelector('main').textContent)");
    let pinned = client.aggregate(&name(SUBNETS[1])).unwrap();
    assert_eq!(pinned.configuration["algorithm"], "copa");

    go_to(&mut browser, "Audit log");
    browser.until("document.querySelector('h2')?.textContent === 'Audit log'");
    let lines = browser.value(
        "[...document.querySelectorAll('tbody tr')].map((row) => row.children[2].textContent)",
    );
    let lines: Vec<&str> =
        lines.as_array().unwrap().iter().filter_map(|line| line.as_str()).collect();
    assert_eq!(lines[..3], ["pin", "pin", "pause"]);

    experiments_by_keyboard(&mut browser, &engine, &site, pictures.as_deref());

    everything_safe_by_keyboard(&mut browser, &engine, &site, pictures.as_deref());
    tokens_by_keyboard(&mut browser, &engine);
    a_damaged_row_is_named(&mut browser, &site);

    // Who likes it dark gets it dark.
    let ground = "getComputedStyle(document.body).backgroundColor";
    let light = browser.value(ground);
    let dark = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    browser.tell("Emulation.setEmulatedMedia", &dark);
    assert_ne!(browser.value(ground), light);
    if let Some(folder) = &pictures {
        browser.picture(&folder.join("engine-audit-dark.png"));
    }
    // What the page shows then is a sentence, and what it showed before stays.
    engine.kill();
    browser.value("location.hash = '#/'");
    browser.until("document.getElementById('message').textContent !== ''");
}
