/** The file is no capture, or cannot be opened; the message is for people. */
export class NotACaptureError extends Error {}
