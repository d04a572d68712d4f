// The receiving end of a call, in a page: offers to receive, and notes each frame that it presents.
globalThis.receiver = (() => {
	const connection = new RTCPeerConnection();
	const video = document.createElement("video");
	video.muted = true;
	video.autoplay = true;
	document.body.append(video);
	// RTP timestamp, and when the frame is on the screen by the system's clock, in ms.
	let frames = [];
	const see = (_, frame) => {
		frames.push([frame.rtpTimestamp, performance.timeOrigin + frame.expectedDisplayTime]);
		video.requestVideoFrameCallback(see);
	};
	video.requestVideoFrameCallback(see);
	connection.ontrack = ({ streams, track }) => {
		video.srcObject = streams[0] ?? new MediaStream([track]);
	};
	return {
		async offer() {
			connection.addTransceiver("video", { direction: "recvonly" });
			await connection.setLocalDescription(await connection.createOffer());
			return connection.localDescription.sdp;
		},
		async answer(sdp) {
			await connection.setRemoteDescription({ type: "answer", sdp });
			return true;
		},
		takeFrames() {
			const taken = frames;
			frames = [];
			return taken;
		},
		async stats() {
			const reports = [...(await connection.getStats()).values()];
			return reports.find((report) => report.type === "inbound-rtp") ?? {};
		},
	};
})();
