/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Finds the IP header of a frame, as the engine does (sensor/capture/decode/decode-link.ts). */
static __always_inline void read_type(struct link *link)
{
	if (link->type == IPV4)
		link->kind = LINK_IPV4;
	else if (link->type == IPV6)
		link->kind = LINK_IPV6;
	else
		link->kind = link->type < 1536 ? LINK_LLC : LINK_TYPE;
}

static __always_inline void read_tag(struct link *link, struct __sk_buff *skb, __u32 end)
{
	__u32 at = link->at, size;

	switch (link->type) {
	case 0x8100:
	case 0x88a8:
	case 0x9100:
	case 0x9200:
		size = 4;
		break;
	case 0x8926:
		size = 6;
		break;
	case 0x893f:
		size = 8;
		break;
	case 0x88e7:
		size = 18;
		break;
	case 0x8903:
		size = 16;
		break;
	case 0x8847:
	case 0x8848:
		link->kind = LINK_MPLS;
		return;
	case 0x8864:
		link->kind = at + 6 > end ? LINK_DROPPED : LINK_PPP;
		link->at = at + 6;
		return;
	default:
		link->kind = LINK_NOT_IP;
		return;
	}
	if (at + size > end) {
		link->kind = LINK_DROPPED;
		return;
	}
	if (size == 4 && link->vlan == 0)
		link->vlan = word_at(skb, at) & 0xfff;
	link->type = word_at(skb, at + size - 2);
	link->at = at + size;
	/* These two tags are never followed by a length. */
	if ((size == 6 || size == 8) && link->type < 1536)
		link->kind = LINK_NOT_IP;
	else
		read_type(link);
}

static __always_inline void read_llc(struct link *link, struct __sk_buff *skb, __u32 end)
{
	__u32 at = link->at, organization;

	if (at + 3 > end) {
		link->kind = LINK_DROPPED;
	} else if (word_at(skb, at) == 0x0606) {
		link->kind = LINK_IP;
		link->at = at + 3;
	} else if (word_at(skb, at) != 0xaaaa || byte_at(skb, at + 2) != 3) {
		link->kind = LINK_NOT_IP;
	} else if (at + 8 > end) {
		link->kind = LINK_DROPPED;
	} else {
		organization = word_at(skb, at + 3) | byte_at(skb, at + 5);
		link->type = word_at(skb, at + 6);
		link->at = at + 8;
		/* 0 is Ethernet, 00-00-F8 the bridge tunnel encapsulation of 802.1H. */
		if (organization != 0 && organization != 0xf8)
			link->kind = LINK_NOT_IP;
		else if (link->type < 1536)
			link->kind = LINK_NOT_IP;
		else
			read_type(link);
	}
}

/* One label. A pseudowire is an optional control word, then an Ethernet frame. */
static __always_inline void read_mpls(struct link *link, struct __sk_buff *skb, __u32 end)
{
	__u32 at = link->at, nibble;

	if (at + 4 > end) {
		link->kind = LINK_DROPPED;
		return;
	}
	link->at = at + 4;
	if (!(byte_at(skb, at + 2) & 1))
		return;
	at += 4;
	if (at >= end) {
		link->kind = LINK_DROPPED;
		return;
	}
	nibble = byte_at(skb, at) >> 4;
	if (nibble == 4) {
		link->kind = LINK_IPV4;
	} else if (nibble == 6) {
		link->kind = LINK_IPV6;
	} else if (nibble == 0) {
		link->kind = LINK_ETHERNET;
		link->at = at + 4;
	} else {
		link->kind = LINK_NOT_IP;
	}
}

static __always_inline void read_ppp(struct link *link, struct __sk_buff *skb, __u32 end)
{
	__u32 at = link->at, protocol, next;

	if (at >= end || (!(byte_at(skb, at) & 1) && at + 2 > end)) {
		link->kind = LINK_DROPPED;
		return;
	}
	protocol = byte_at(skb, at);
	next = at + 1;
	if (!(protocol & 1)) {
		protocol = word_at(skb, at);
		next = at + 2;
	}
	link->at = next;
	switch (protocol) {
	case 0x21:
		link->kind = LINK_IPV4;
		return;
	case 0x57:
		link->kind = LINK_IPV6;
		return;
	case 0x0281:
	case 0x0283:
		link->kind = LINK_MPLS;
		return;
	case 0x31:
		if (next + 2 > end) {
			link->kind = LINK_DROPPED;
		} else if (byte_at(skb, next + 1) != 1) {
			link->kind = LINK_NOT_IP;
		} else {
			link->kind = LINK_ETHERNET;
			link->at = next + (byte_at(skb, next) & 0x40 ? 6 : 2);
		}
		return;
	case 0x3d:
		if (next + 4 > end)
			link->kind = LINK_DROPPED;
		else if (byte_at(skb, next) >> 6 != 3)
			link->kind = LINK_NOT_IP;
		else
			link->at = next + 4;
		return;
	default:
		link->kind = LINK_NOT_IP;
	}
}

/*
 * Reads the next link header. Returns a verdict, or GOES_ON. A global function, which the verifier follows once and not in each round
 * of the loop.
 */
__noinline int read_link_header(struct __sk_buff *skb)
{
	__u32 zero = 0, end = skb->len;
	struct scratch *room = bpf_map_lookup_elem(&scratch, &zero);
	struct link *link;

	if (!room)
		return DROPPED;
	link = &room->link;
	if (end > LINK_BYTES_MAX)
		end = LINK_BYTES_MAX;
	if (link->at > LINK_BYTES_MAX)
		return DROPPED;
	switch (link->kind) {
	case LINK_ETHERNET:
		if (link->at + 14 > end)
			return DROPPED;
		link->mac_at = link->at + 6;
		link->type = word_at(skb, link->at + 12);
		link->at += 14;
		read_type(link);
		break;
	case LINK_TYPE:
		read_tag(link, skb, end);
		break;
	case LINK_LLC:
		read_llc(link, skb, end);
		break;
	case LINK_MPLS:
		read_mpls(link, skb, end);
		break;
	case LINK_PPP:
		read_ppp(link, skb, end);
		break;
	case LINK_IP:
		if (link->at >= end)
			return DROPPED;
		link->kind = byte_at(skb, link->at) >> 4 == 4 ? LINK_IPV4 : LINK_IPV6;
		return IS_IP;
	case LINK_NOT_IP:
		return NOT_IP;
	case LINK_DROPPED:
		return DROPPED;
	default:
		return IS_IP;
	}
	return GOES_ON;
}

/* Walks the link headers. Each one consumes bytes, so the loop ends within those that are read. */
static __always_inline int find_ip(struct __sk_buff *skb)
{
	int verdict;

	/* Without a loop: the verifier does not see the end of one where it must think of speculation too (no CAP_PERFMON). */
#pragma clang loop unroll(full)
	for (int i = 0; i < LINK_BYTES_MAX / LINK_HEADER_BYTES_MIN; i++) {
		verdict = read_link_header(skb);
		if (verdict != GOES_ON)
			return verdict;
	}
	return DROPPED;
}
