/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What a packet is for the detector, without what is known of its flow: as `kindOf` in sensor/attack-counters/packet-kind.ts, packet
 * by packet (`kernel-equals-engine`).
 */
#define ICMP 1
#define ICMP6 58

/* Extension headers of IPv6. */
#define HOP_BY_HOP 0
#define ROUTING 43
#define FRAGMENT 44
#define AUTHENTICATION 51
#define DESTINATION_OPTIONS 60
#define EXTENSIONS_MAX 16
/* Extension headers follow link headers of LINK_BYTES_MAX; each has 2,048 bytes at most. */
#define EXTENSIONS_END 65535

/* Numbers of `Kind`, whose other kinds are of flows that go both ways. */
enum kind {
	OPENING = 0,
	OPENING_ANSWER = 1,
	SEGMENT = 2,
	RESET = 3,
	GROUP = 5,
	REFLECTION = 6,
	DATAGRAM = 8,
	ICMP_OTHER = 9,
	ICMP_ANSWER = 10,
	PART = 11,
	PROTOCOL = 12,
};

/* Services that are used for amplification, as in sensor/attack-counters/packet-kind.ts. */
static __always_inline int is_amplification(__u32 port)
{
	switch (port) {
	case 17:
	case 19:
	case 53:
	case 69:
	case 111:
	case 123:
	case 137:
	case 161:
	case 389:
	case 427:
	case 520:
	case 1194:
	case 1434:
	case 1900:
	case 3283:
	case 3478:
	case 3702:
	case 5060:
	case 5093:
	case 5353:
	case 5683:
	case 6881:
	case 10001:
	case 11211:
	case 27015:
	case 27960:
	case 37810:
		return 1;
	default:
		return 0;
	}
}

/* Reads the next extension header. Returns 0 after the last one. A global function, for the same reason as `read_link_header`. */
__noinline int read_extension(struct __sk_buff *skb)
{
	__u32 zero = 0, bits;
	struct scratch *room = bpf_map_lookup_elem(&scratch, &zero);
	struct transport *t;
	__u8 header[4];

	if (!room)
		return 0;
	t = &room->transport;
	if (t->at > EXTENSIONS_END || t->at + 8 > t->end || bpf_skb_load_bytes(skb, t->at, header, 4) < 0)
		return 0;
	switch (t->protocol) {
	case HOP_BY_HOP:
	case ROUTING:
	case DESTINATION_OPTIONS:
		t->at += (header[1] + 1) << 3;
		break;
	case AUTHENTICATION:
		t->at += (header[1] + 2) << 2;
		break;
	case FRAGMENT:
		bits = header[2] << 8 | header[3];
		/* An atomic fragment is a whole packet. */
		t->fragment = bits & 0xfff8 ? 2 : bits & 1;
		t->at += 8;
		break;
	default:
		return 0;
	}
	t->protocol = header[0];
	return t->fragment != 2;
}

/* Finds the transport header of the packet. */
static __always_inline void find_transport(struct __sk_buff *skb, struct transport *t)
{
	__u32 end = skb->len, at = t->start;

	t->end = t->length < end - at ? at + t->length : end;
	t->fragment = 0;
	if (t->version == 4) {
		__u8 ip[10] = {};
		__u32 bits;

		/* One read: each is a call. */
		bpf_skb_load_bytes(skb, at, ip, sizeof(ip));
		bits = ip[6] << 8 | ip[7];
		t->protocol = ip[9];
		t->fragment = bits & 0x1fff ? 2 : bits >> 13 & 1;
		t->at = at + ((ip[0] & 15) << 2);
	} else {
		t->protocol = byte_at(skb, at + 6);
		t->at = at + 40;
		if (t->protocol != TCP && t->protocol != UDP) {
#pragma clang loop unroll(full)
			for (int i = 0; i < EXTENSIONS_MAX; i++)
				if (!read_extension(skb))
					break;
		}
	}
	if (t->at > t->end)
		t->at = t->end;
}

static __always_inline __u32 kind_of_icmp(__u32 protocol, __u32 type)
{
	/* Echo replies and errors. */
	if (protocol == ICMP)
		return type == 0 || type == 3 || type == 4 || type == 11 || type == 12 ? ICMP_ANSWER : ICMP_OTHER;
	return type == 129 || (type >= 1 && type <= 4) ? ICMP_ANSWER : ICMP_OTHER;
}

static __always_inline __u32 kind_of_flags(__u32 flags)
{
	if (flags & 4)
		return RESET;
	if (flags & 2)
		return flags & 16 ? OPENING_ANSWER : OPENING;
	return SEGMENT;
}

static __always_inline int is_to_group(const struct transport *t)
{
	return t->version == 4 ? t->target4 >= 224 : t->target6 == 255;
}

/* What the packet is, as `kindOf` of the engine. Its transport header is known. */
static __always_inline __u32 kind_of(struct __sk_buff *skb, struct transport *t)
{
	int is_reflection = 0;

	if (t->protocol == UDP) {
		if (is_to_group(t))
			return GROUP;
		is_reflection = t->fragment != 2 && t->at + 4 <= t->end && is_amplification(word_at(skb, t->at));
	}
	if (t->fragment)
		return is_reflection ? REFLECTION : PART;
	switch (t->protocol) {
	case TCP:
		if (t->at + 14 > t->end)
			return SEGMENT;
		return kind_of_flags(byte_at(skb, t->at + 13));
	case UDP:
		return is_reflection ? REFLECTION : DATAGRAM;
	case ICMP:
	case ICMP6:
		return t->at < t->end ? kind_of_icmp(t->protocol, byte_at(skb, t->at)) : ICMP_OTHER;
	default:
		return PROTOCOL;
	}
}

/* What is not found without a search. */
#define NOT_PLAIN KINDS

/* `header`: of TCP or UDP, with 14 bytes; `length`: of the packet from there on. */
static __always_inline __u32 kind_of_plain(const struct transport *t, const __u8 *header, __u32 protocol, __u32 length)
{
	if (protocol == TCP && length >= 14)
		return kind_of_flags(header[13]);
	if (protocol != UDP || length < 4)
		return NOT_PLAIN;
	if (is_to_group(t))
		return GROUP;
	return is_amplification(header[0] << 8 | header[1]) ? REFLECTION : DATAGRAM;
}

/* The same for the commonest packets, without copies: whole ones with plain headers, directly in Ethernet. */
static __always_inline __u32 find_plain_kind(struct __sk_buff *skb, const struct transport *t)
{
	const __u8 *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;

	if (t->start != 14 || data + 48 > data_end)
		return NOT_PLAIN;
	if (t->version == 4)
		return data[14] == 0x45 && !(data[20] & 0x3f) && !data[21]
			       ? kind_of_plain(t, data + 34, data[23], t->length - 20)
			       : NOT_PLAIN;
	return data + 68 > data_end ? NOT_PLAIN : kind_of_plain(t, data + 54, data[20], t->length - 40);
}

/*
 * Reads what the packet is, from where its IP header begins. A global function: the verifier follows its ways once, and not again for each way
 * to a call.
 */
__noinline int read_kind(struct __sk_buff *skb)
{
	__u32 zero = 0, kind;
	struct scratch *room = bpf_map_lookup_elem(&scratch, &zero);

	if (!room)
		return 0;
	kind = find_plain_kind(skb, &room->transport);
	if (kind == NOT_PLAIN) {
		find_transport(skb, &room->transport);
		kind = kind_of(skb, &room->transport);
	}
	room->kind = kind;
	room->volume = kind == REFLECTION ? REFLECTION_BYTES : kind == DATAGRAM ? DATAGRAM_BYTES : OTHER_BYTES;
	return 0;
}
