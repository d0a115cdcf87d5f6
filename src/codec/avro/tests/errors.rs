//! Records that are none, and what is left of them: nothing.

use super::*;
use crate::codec::rows::MAX_BATCH_BYTES;

#[test]
fn bad_records_leave_no_trace_among_good_ones() {
    let good: Vec<Vec<u8>> = TRIPS.iter().map(|trip| hex(trip)).collect();
    let mut whole = trips(TRIP_12);
    good.iter().enumerate().for_each(|(row, trip)| assert_eq!(whole.decode(trip, row as u64), Ok(Decoded::Row)));
    let want = whole.rows.flush();

    let mut decoder = trips(TRIP_12);
    for (row, trip) in good.iter().enumerate() {
        for bad in &good {
            for end in 0..bad.len() {
                decoder.decode(&bad[..end], 77).expect_err("cut short");
            }
            let error = decoder.decode(&[bad, &[0, 1][..]].concat(), 77).expect_err("too long");
            assert!(error.to_string().contains("2 bytes are left over"), "{error}");
        }
        assert_eq!(decoder.decode(trip, row as u64), Ok(Decoded::Row));
    }
    assert_eq!(decoder.rows.flush(), want);
}

#[test]
fn a_value_is_known_by_its_first_byte() {
    let mut decoder = trips(TRIP_12);
    let cases: &[(&[u8], &str)] = &[
        (b"\x01\x00\x00\x00\x0b", "its first byte is 01, not 00"),
        (br#"{"id":1}"#, "7b, not 00; it looks like JSON, which JsonKafkaSource reads"),
        (b"Obj\x01", "a whole Avro file"),
        (b"\xc3\x01abcdefgh", "fingerprint"),
        (b"", "it has 0 bytes"),
        (b"\x00\x00\x00\x00", "it has 4 bytes"),
    ];
    for (bytes, word) in cases {
        let error = decoder.decode(bytes, 0).expect_err(word);
        assert!(error.code() == "avro-framing" && error.to_string().contains(word), "{word:?}: {error}");
    }
}

#[test]
fn errors_say_where() {
    let mut decoder = trips(TRIP_12);
    let nested = decoder.decode(&hex("000000000b 047430 02 0e 0602ff6f"), 0).expect_err("not UTF-8").to_string();
    assert!(nested.starts_with("field addr.city: ") && nested.contains("schema id 11"), "{nested}");
    assert!(nested.contains("(at byte 15, "), "{nested}");
    let id = decoder.decode(&hex("000000000b 047430"), 0).expect_err("cut short").to_string();
    assert!(id.starts_with("field ts: the record ends") && id.contains("at byte 9"), "{id}");
}

#[test]
fn a_schema_that_is_none_fails_its_records() {
    let mut decoder = trips(TRIP_12);
    for (id, text, word) in [
        (1, "{", "schema id 1 is not usable"),
        (2, r#""int""#, "int, not a record"),
        (3, r#"{"type":"record","name":"R","fields":[{"name":"a","type":"Gone"}]}"#, "Gone"),
    ] {
        let error = decoder.learn(id, text).expect_err(word);
        assert!(error.code() == "avro-schema" && error.to_string().contains(word), "{word:?}: {error}");
        assert_eq!(decoder.decode(&framed(id, &[]), 0), Err(error));
    }
    decoder.learn(1, TRIP_11).expect("a schema may be learnt anew");
    assert_eq!(decoder.decode(&framed(1, &hex("0474300206064f7275")), 0), Ok(Decoded::Row));
}

#[test]
fn batch_is_refused_before_its_offsets_could_overflow() {
    let mut decoder = decoder(r#""string""#, r#""string""#);
    decoder.rows.add(MAX_BATCH_BYTES - 4, 0, |_| Ok::<_, ()>(())).expect("nothing to fail");
    assert!(decoder.decode(&framed(1, &[0]), 0).expect_err("too much").to_string().contains("1 GiB"));
    decoder.rows.flush();
    decoder.decode(&framed(1, &[0]), 0).expect("a new batch");
}
