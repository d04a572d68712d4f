use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;

use super::*;

#[test]
fn every_key_has_its_type_and_unit() {
    // In the form of the examples of CTA-5004.
    let headers = [
        "br=3200,d=4004,ot=v,tb=6000",
        "bl=21300,dl=18500,mtp=48100,nor=\"..%2Ftesting%2F3.m4v\",nrr=\"12323-48763\",su",
        "cid=\"faec5fc2-ac30-11ea-bb37-0242ac130002\",pr=1.08,sf=d,sid=\"6e2fb550-c457\",st=v,v=1",
        "bs,rtp=12000",
    ];
    let expected = Cmcd {
        bitrate: Some(Rate::from_mbps(3.2)),
        buffer: Some(Duration::from_millis(21_300)),
        is_starved: true,
        content: Some("faec5fc2-ac30-11ea-bb37-0242ac130002".to_owned()),
        duration: Some(Duration::from_millis(4004)),
        deadline: Some(Duration::from_millis(18_500)),
        measured: Some(Rate::from_mbps(48.1)),
        next_object: Some("../testing/3.m4v".to_owned()),
        next_range: Some(Range { first: Some(12_323), last: Some(48_763) }),
        object: Some(ObjectType::Video),
        playback_rate: Some(1.08),
        requested_max: Some(Rate::from_mbps(12.0)),
        format: Some(StreamingFormat::Dash),
        session: Some("6e2fb550-c457".to_owned()),
        stream: Some(StreamType::OnDemand),
        is_urgent: true,
        top_bitrate: Some(Rate::from_mbps(6.0)),
    };
    assert_eq!(Cmcd::parse(headers), Ok(expected.clone()));
    let query = format!("a=b&CMCD={}&c", utf8_percent_encode(&headers.join(","), NON_ALPHANUMERIC));
    assert_eq!(Cmcd::from_query(&query), Ok(Some(expected)));
    assert_eq!(Cmcd::from_query("a=b&cmcd=bs&XCMCD=bs"), Ok(None), "names have their case");
    assert_eq!(Cmcd::from_query("CMCD="), Ok(Some(Cmcd::default())));
}

#[test]
fn tokens_and_ranges_are_those_of_the_specification() {
    for (text, of) in OBJECTS {
        assert_eq!(Cmcd::parse([&*format!("ot={text}")]).unwrap().object, Some(of));
    }
    let range = |text: &str| Cmcd::parse([text]).unwrap().next_range.unwrap();
    assert_eq!(range("nrr=\"1000-\""), Range { first: Some(1000), last: None });
    assert_eq!(range("nrr=\"-500\""), Range { first: None, last: Some(500) });
    let flags = Cmcd::parse(["bs=?1,su=?0"]).unwrap();
    assert_eq!((flags.is_starved, flags.is_urgent), (true, false));
    // Keys of others, and of later versions.
    assert_eq!(Cmcd::parse(["com.example-MyKey=x,sta=p,bsd=3"]), Ok(Cmcd::default()));
}

#[test]
fn what_is_wrong_is_named_with_what_is_right() {
    for (text, error) in [
        ("br=fast", "br=\"fast\": expected a whole number of kbit/s"),
        ("br=-1", "br=\"-1\": expected a whole number of kbit/s"),
        ("br", "br=nothing: expected a whole number of kbit/s"),
        ("tb=1.5", "tb=\"1.5\": expected a whole number of kbit/s"),
        ("bl=\"7\"", "bl=\"7\": expected a whole number of milliseconds"),
        ("d=1234567890123456", "d=\"1234567890123456\": expected a whole number of milliseconds"),
        ("bl=21303333333330", "bl=\"21303333333330\": expected a whole number of milliseconds"),
        ("bs=yes", "bs=\"yes\": expected the key alone"),
        ("ot=x", "ot=\"x\": expected m, a, v, av, i, c, tt, k or o"),
        ("pr=1e9", "pr=\"1e9\": expected a decimal number such as 1.5"),
        ("pr=.5", "pr=\".5\": expected a decimal number such as 1.5"),
        ("sid=abc", "sid=\"abc\": expected 1 to 64 characters in \"…\""),
        ("nrr=\"9-8\"", "nrr=\"9-8\": expected bytes such as \"0-999\", \"1000-\" or \"-500\""),
        ("nor=\"%ff\"", "nor=\"%ff\": expected a path in \"…\", percent-encoded UTF-8"),
        ("v=2", "v=\"2\": expected 1, the version of CMCD that is read"),
        ("bs,br=1,bs", "the key bs is there twice"),
    ] {
        assert_eq!(Cmcd::parse([text]).unwrap_err().to_string(), error, "{text}");
    }
    let long = format!("sid=\"{}\"", "ä".repeat(65));
    assert!(Cmcd::parse([&*long]).unwrap_err().to_string().contains("1 to 64 characters"));
    assert_eq!(Cmcd::from_query("CMCD=%ff"), Err(CmcdError::Encoding));
}

#[test]
fn long_data_is_refused_before_it_is_read() {
    let half = format!("nor=\"{}\"", "x".repeat(LEN_MAX / 2));
    assert_eq!(Cmcd::parse([&*half, &*half]), Err(CmcdError::TooLong(2 * half.len())));
    let query = format!("CMCD={}", "%41".repeat(LEN_MAX + 1));
    assert_eq!(Cmcd::from_query(&query), Err(CmcdError::TooLong(3 * (LEN_MAX + 1))));
}

fn data() -> impl Strategy<Value = Cmcd> {
    let kbps = || {
        proptest::option::of(
            (0u64..100_000_000).prop_map(|kbps| Rate::from_bytes_per_sec(kbps * 125)),
        )
    };
    let ms = || proptest::option::of((0u64..100_000_000).prop_map(Duration::from_millis));
    let text = || proptest::option::of("[ -~äß€]{1,64}");
    let range = (0u64..1000, 0u64..1000)
        .prop_map(|(first, more)| Range { first: Some(first), last: Some(first + more) });
    let numbers = (kbps(), kbps(), kbps(), kbps(), ms(), ms(), ms());
    let texts = (text(), text(), text(), proptest::option::of(range));
    let rest = (any::<[bool; 2]>(), 0..OBJECTS.len(), 0..4usize, 0..2usize, 0u32..4000);
    (numbers, texts, rest).prop_map(|(numbers, texts, rest)| Cmcd {
        bitrate: numbers.0,
        measured: numbers.1,
        requested_max: numbers.2,
        top_bitrate: numbers.3,
        buffer: numbers.4,
        duration: numbers.5,
        deadline: numbers.6,
        content: texts.0,
        session: texts.1,
        next_object: texts.2,
        next_range: texts.3,
        is_starved: rest.0[0],
        is_urgent: rest.0[1],
        object: Some(OBJECTS[rest.1].1),
        format: Some(FORMATS[rest.2].1),
        stream: Some(STREAMS[rest.3].1),
        playback_rate: Some(f64::from(rest.4) / 1000.0),
    })
}

proptest! {
    #[test]
    fn there_and_back(data in data()) {
        let text = data.to_string();
        prop_assert_eq!(Cmcd::parse([&*text]).unwrap(), data.clone());
        let query = format!("x&CMCD={}", utf8_percent_encode(&text, NON_ALPHANUMERIC));
        prop_assert_eq!(Cmcd::from_query(&query).unwrap(), Some(data));
    }

    #[test]
    fn damaged_data_is_read_the_same_when_written_again_or_refused_in_one_line(
        data in data(), at in any::<prop::sample::Index>(), c in any::<char>(),
    ) {
        let mut text: Vec<char> = data.to_string().chars().collect();
        let at = at.index(text.len());
        text[at] = c;
        match Cmcd::parse([&*text.into_iter().collect::<String>()]) {
            Ok(read) => prop_assert_eq!(Cmcd::parse([&*read.to_string()]).unwrap(), read),
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
        }
    }
}
