//! Video to order: WebM (RFC 8794, RFC 9559) with VP8 (RFC 6386), of any bitrate, without an encoder.
//!
//! The arithmetic decoder of VP8 reads zeros as the first choice of everything: no filter, no
//! segments, every block predicted from the pixels around it and without a difference. So a key
//! frame is its header and zeros, a grey picture, and zeros after it are as good as none: a frame
//! is as long as one wants it.

/// Of a video: 10 key frames a second, in segments of a second.
pub(crate) struct Video {
    pub(crate) width: u16,
    pub(crate) height: u16,
    pub(crate) kbps: usize,
}

const FRAMES_PER_SECOND: usize = 10;
/// Bytes for the modes of all blocks (RFC 6386 §9.2): zeros take some four bits of it for each
/// block of 16 × 16, and a picture of 960 × 540 has 2040.
const FIRST_PARTITION: u32 = 4000;

impl Video {
    /// What a player needs before any segment.
    pub(crate) fn header(&self) -> Vec<u8> {
        let format = [
            element(&[0x42, 0x82], b"webm"),
            element(&[0x42, 0x87], &[2]), // DocTypeVersion
            element(&[0x42, 0x85], &[2]), // DocTypeReadVersion
        ];
        let info = [
            element(&[0x2a, 0xd7, 0xb1], &[0x0f, 0x42, 0x40]), // TimestampScale: milliseconds
            element(&[0x4d, 0x80], b"trimtab"),                // MuxingApp
            element(&[0x57, 0x41], b"trimtab"),                // WritingApp
        ];
        let picture = [
            element(&[0xb0], &self.width.to_be_bytes()),
            element(&[0xba], &self.height.to_be_bytes()),
        ];
        let track = [
            element(&[0xd7], &[1]), // TrackNumber
            element(&[0x73, 0xc5], &[1]),
            element(&[0x83], &[1]), // TrackType: video
            element(&[0x86], b"V_VP8"),
            element(&[0xe0], &picture.concat()),
        ];
        let mut all = element(&[0x1a, 0x45, 0xdf, 0xa3], &format.concat());
        // A Segment of unknown length: it goes on as long as clusters come.
        all.extend([0x18, 0x53, 0x80, 0x67, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        all.extend(element(&[0x15, 0x49, 0xa9, 0x66], &info.concat()));
        all.extend(element(&[0x16, 0x54, 0xae, 0x6b], &element(&[0xae], &track.concat())));
        all
    }

    /// The segment that begins at this second: a Cluster.
    pub(crate) fn segment(&self, second: u16) -> Vec<u8> {
        let mut cluster = element(&[0xe7], &(u32::from(second) * 1000).to_be_bytes());
        for number in 0..FRAMES_PER_SECOND {
            let after_ms = (number * 1000 / FRAMES_PER_SECOND) as u16;
            let mut block = vec![0x81]; // of track 1
            block.extend(after_ms.to_be_bytes());
            block.push(0x80); // a key frame
            block.extend(self.frame());
            cluster.extend(element(&[0xa3], &block)); // SimpleBlock
        }
        element(&[0x1f, 0x43, 0xb6, 0x75], &cluster)
    }

    /// A key frame (RFC 6386 §9.1): a tag with "shown" and the length of the first partition, a start code, the size.
    fn frame(&self) -> Vec<u8> {
        let tag = 1 << 4 | FIRST_PARTITION << 5;
        let mut frame = tag.to_le_bytes()[..3].to_vec();
        frame.extend([0x9d, 0x01, 0x2a]);
        frame.extend(self.width.to_le_bytes());
        frame.extend(self.height.to_le_bytes());
        frame.resize(self.kbps * 1000 / 8 / FRAMES_PER_SECOND, 0);
        frame
    }
}

/// An element of EBML: its number, its length in eight bytes, what is in it.
fn element(number: &[u8], body: &[u8]) -> Vec<u8> {
    let length = 1 << 56 | body.len() as u64;
    [number, &length.to_be_bytes(), body].concat()
}
