/** The file is not a capture or can not be opened. The message is shown to people. */
export class NotACaptureError extends Error {}
