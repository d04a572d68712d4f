//! Chromium loads a page.

use serde_json::{Value, json};

use crate::room::{Room, assert_steered, noise};

const PICTURES: usize = 12;

/// A picture of any size in bytes, as wide as its number tells.
fn picture(number: usize) -> Vec<u8> {
    let size = 20_000 * (1 + number % 4);
    let padding: String =
        noise(size / 2, number as u64).iter().map(|byte| format!("{byte:02x}")).collect();
    let width = 100 + number;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"50\">\
         <!--{padding}--><rect width=\"{width}\" height=\"50\"/></svg>"
    )
    .into_bytes()
}

#[test]
fn chromium_loads_a_page_with_pictures_on_a_steered_connection() {
    let images: String = (0..PICTURES).map(|n| format!("<img src=\"{n}.svg\">")).collect();
    let page = format!(
        "<!doctype html><link rel=\"icon\" href=\"data:,\"><title>Pictures</title>{images}"
    );
    let mut files: Vec<_> = (0..PICTURES).map(|n| (format!("{n}.svg"), picture(n))).collect();
    let sizes: Vec<_> = files.iter().map(|(_, contents)| json!(contents.len())).collect();
    files.push(("index.html".to_owned(), page.into_bytes()));
    let Some(room) = Room::open("download", &files) else { return };
    let Some(mut browser) = room.browse("") else { return };

    browser.until("document.title === 'Pictures' && document.readyState === 'complete'");
    let widths = browser.value("[...document.images].map((image) => image.naturalWidth)");
    assert_eq!(widths, (0..PICTURES).map(|n| json!(100 + n)).collect::<Value>());
    let entries = "[...performance.getEntriesByType('navigation'), \
                   ...performance.getEntriesByType('resource')\
                   .sort((a, b) => parseInt(a.name.split('/').at(-1)) \
                   - parseInt(b.name.split('/').at(-1)))]\
                   .filter((entry) => entry.name.startsWith('https:'))";
    let protocols = browser.value(&format!("{entries}.map((entry) => entry.nextHopProtocol)"));
    assert_eq!(protocols, json!(vec!["h3"; 1 + PICTURES]));
    let arrived =
        browser.value(&format!("{entries}.slice(1).map((entry) => entry.encodedBodySize)"));
    assert_eq!(arrived, Value::from(sizes));
    let loaded = "performance.getEntriesByType('navigation')[0].loadEventEnd";
    println!("loaded after {} ms", browser.value(loaded));

    browser.tell("Browser.close", &json!({}));
    let reports = room.reports(1 + PICTURES as u64);
    assert_steered(reports.iter().max_by_key(|report| report.responses).expect("a report"));
}
