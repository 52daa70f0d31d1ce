/**
 * Records the first packets of attacks in a capture thread: those to or from one address or prefix.
 *
 * Guarantees: a thread records at most eight attacks at once, each in a buffer of its own (at most 532 KiB) that it hands over
 * when it is full or no longer wanted. While nothing is recorded, the packet path does not call it.
 *
 * The main thread says what is wanted, and puts together what the threads give (`sensor/evidence`).
 */
export {
  PacketRecorder,
  type RecordedPackets,
  readRecords,
  recordingsMax,
  type WantedRecording,
} from './packet-recorder.ts';
