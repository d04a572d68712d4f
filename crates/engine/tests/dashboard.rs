//! The dashboard in a real browser, by keyboard alone and without any network but the engine.
//!
//! `TRIMTAB_PICTURES=FOLDER` makes it wait for more decisions, and leaves pictures of the pages there.

#[path = "common/browser.rs"]
mod browser;
mod common;

use std::path::PathBuf;
use std::time::Duration;

use browser::Browser;
use common::{Process, Site, batch, now_ms, report};
use serde_json::json;
use trimtab_engine::{Hold, Name};

const SUBNETS: [&str; 4] = ["198.51.100.0/24", "203.0.113.0/24", "203.0.114.0/24", "2001:db8::/48"];

#[test]
fn engine_process() {
    common::run_if_asked();
}

fn name(prefix: &str) -> Name {
    Name { service: "tv".to_owned(), prefix: prefix.to_owned() }
}

/// A second of reports for each aggregate, better where the knob `gamma` is near 100.
fn serve_traffic(engine: &Process, site: &Site, seconds: u64) {
    for second in 1..=seconds {
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

#[test]
fn aggregates_are_found_explained_and_paused_by_keyboard() {
    let Some(mut browser) = Browser::start() else { return };
    let pictures = std::env::var_os("TRIMTAB_PICTURES").map(PathBuf::from);
    let site = Site::new("");
    let engine = site.start();
    serve_traffic(&engine, &site, if pictures.is_some() { 90 } else { 5 });

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
    browser.until("document.querySelectorAll('tbody tr').length === 4");
    if let Some(folder) = &pictures {
        browser.picture(&folder.join("engine-list.png"));
    }

    // The search is a key away, and shows what it finds while one types.
    browser.press("/");
    browser.until("document.activeElement?.id === 'search'");
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

    browser.value("document.body.focus(); document.querySelector('.skip').focus()");
    browser.tab_to("at.textContent === 'Audit log'");
    browser.press("Enter");
    browser.until("document.querySelector('h2')?.textContent === 'Audit log'");
    let lines = browser.value(
        "[...document.querySelectorAll('tbody tr')].map((row) => row.children[2].textContent)",
    );
    assert_eq!((&lines[0], &lines[1]), (&json!("pin"), &json!("pause")));

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
