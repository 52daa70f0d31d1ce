/**
 * Capture files: pcap and pcapng, compressed or not, read frame by frame. Loads little, because `sensor read` starts with
 * it.
 */
export { NotACaptureError } from './capture-error.ts';
export { type CaptureFile, openCaptureFile } from './capture-file.ts';
