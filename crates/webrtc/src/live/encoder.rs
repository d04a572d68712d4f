//! A live encoder that follows a bitrate: openh264.

use openh264::encoder::{
    BitRate, Complexity, EncoderConfig, FrameRate, FrameType, Profile, RateControlMode, UsageType,
};
use openh264::formats::YUVSource;
use openh264::{OpenH264API, Timestamp};
use openh264_sys2::{
    ENCODER_OPTION, ENCODER_OPTION_BITRATE, ENCODER_OPTION_TRACE_LEVEL, SBitrateInfo,
    SPATIAL_LAYER_ALL, WELS_LOG_QUIET,
};
use trimtab_rtc::units::Rate;

use crate::error::WebrtcError;

/// What the encoder made of a frame.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// NAL units in Annex B form.
    pub data: Vec<u8>,
    /// Whether it needs no other frame.
    pub is_key: bool,
}

/// An encoder of H.264, constrained baseline.
pub struct Encoder {
    inner: openh264::encoder::Encoder,
    most: Rate,
}

impl Encoder {
    /// An encoder of frames like this one, up to a bitrate.
    ///
    /// # Errors
    /// The library refuses the size or the rate.
    pub fn new(first: &impl YUVSource, fps: u32, most: Rate) -> Result<Self, WebrtcError> {
        let config = EncoderConfig::new()
            .bitrate(BitRate::from_bps(bits(most)))
            .max_frame_rate(FrameRate::from_hz(fps as f32))
            .rate_control_mode(RateControlMode::Bitrate)
            .usage_type(UsageType::CameraVideoRealTime)
            .profile(Profile::Baseline)
            .complexity(Complexity::Low)
            .scene_change_detect(false)
            .num_threads(1)
            .skip_frames(false);
        let inner = openh264::encoder::Encoder::with_api_config(OpenH264API::from_source(), config);
        let inner = inner.map_err(WebrtcError::encoder("start"))?;
        let mut encoder = Self { inner, most };
        // Else it warns that a rate cannot be kept without leaving out frames: that is the caller's.
        encoder.set_option(ENCODER_OPTION_TRACE_LEVEL, &mut WELS_LOG_QUIET.clone())?;
        // The rate can be set once a frame was encoded; the first one has that of the maximum.
        encoder.inner.encode(first).map_err(WebrtcError::encoder("encode a frame"))?;
        Ok(encoder)
    }

    /// Encodes a frame at a bitrate; `None` where the library gives nothing.
    ///
    /// # Errors
    /// The library refuses the rate or the frame.
    pub fn encode(
        &mut self,
        frame: &impl YUVSource,
        at_ms: u64,
        bitrate: Rate,
        key: bool,
    ) -> Result<Option<Encoded>, WebrtcError> {
        self.set_bitrate(bitrate.min(self.most))?;
        if key {
            self.inner.force_intra_frame();
        }
        let stream = self.inner.encode_at(frame, Timestamp::from_millis(at_ms));
        let stream = stream.map_err(WebrtcError::encoder("encode a frame"))?;
        let is_key = matches!(stream.frame_type(), FrameType::IDR | FrameType::I);
        let data = stream.to_vec();
        Ok((!data.is_empty()).then_some(Encoded { data, is_key }))
    }

    fn set_bitrate(&mut self, bitrate: Rate) -> Result<(), WebrtcError> {
        let bits = bits(bitrate).cast_signed();
        let mut info = SBitrateInfo { iLayer: SPATIAL_LAYER_ALL, iBitrate: bits };
        self.set_option(ENCODER_OPTION_BITRATE, &mut info)
    }

    /// Sets an option that takes a value of this type.
    #[expect(unsafe_code, reason = "the library has no other way to change the rate")]
    fn set_option<T>(&mut self, option: ENCODER_OPTION, value: &mut T) -> Result<(), WebrtcError> {
        // SAFETY: the library reads one value of the option's type, which lives until it returns; the
        // two callers above give a c_int and an SBitrateInfo (codec_app_def.h, ENCODER_OPTION).
        let done = unsafe { self.inner.raw_api().set_option(option, (&raw mut *value).cast()) };
        if done != 0 {
            return Err(WebrtcError::encoder("set an option")(format!("{option}: {done}")));
        }
        Ok(())
    }
}

/// Bits per second; the library's are below 2^31.
fn bits(rate: Rate) -> u32 {
    rate.bits_per_sec().clamp(1.0, 2e9) as u32
}
