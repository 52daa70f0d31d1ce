/** When a target is worth a detail: packets and bytes of one kind in one second, by direction and kind. */
export interface DetailLimits {
  packets: readonly (readonly number[])[];
  bytes: readonly number[];
}
