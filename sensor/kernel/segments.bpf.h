/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Packets that were merged into a frame; 0 for an unknown number. A guest's offload tells the size of a segment alone. */
static __always_inline __u32 count_segments(struct __sk_buff *skb, __u32 transport, __u32 protocol, __u32 end)
{
	__u32 header = 8, size = skb->gso_size;
	__u8 offset;

	if (skb->gso_segs > 0)
		return skb->gso_segs;
	if (size == 0)
		return 1;
	if (protocol == TCP) {
		if (bpf_skb_load_bytes(skb, transport + 12, &offset, 1) < 0)
			return 0;
		header = (offset >> 4) << 2;
	} else if (protocol != UDP) {
		return 0;
	}
	if (end <= transport + header + size)
		return 1;
	return (end - transport - header + size - 1) / size;
}
