// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Drops packets of attacks by rules that the sensor writes: those on this host's servers on the way in (XDP), those by them on the way
 * out (tc). There it also learns who converses with this host.
 *
 * A rule counts what it matches; from `drops_at` on it drops it. What a pair of addresses carries that was established before the attack
 * passes. A frame that this program can't read passes. Without a sign of life of the sensor for ten seconds everything passes, and a
 * rule has an end of its own. What is dropped is also counted by address, direction and UTC minute, for the last four minutes: a sensor that
 * was away finds it there. Nothing is dropped of an address that has no such counters.
 *
 * A pair is established when both sides sent payload or segments of an open connection, each after the other (out, in, out), over at
 * least two seconds. Only what this host sends begins a pair, and no refusal does (RST, ICMP unreachable): made-up senders don't
 * answer. Pairs in the making have a table of their own, so that answers to a flood push no established pair out. filter-layout.ts
 * describes the same structures.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#define SECOND 1000000000ULL
#define MINUTE (60 * SECOND)
#define MINUTES 4
#define FILTER_PATIENCE (10 * SECOND)
/* Learning ends an hour after the last sign of life. */
#define LEARNING_PATIENCE (3600 * SECOND)
#define ESTABLISHED_AFTER (2 * SECOND)
#define LEGS_MIN 3
#define RULES_OF_ADDRESS 8
#define PORTS_MAX 8
#define EXTENSIONS_MAX 4

#define IPV4 0x0800
#define IPV6 0x86dd
#define TCP 6
#define UDP 17
#define ICMP 1
#define ICMPV6 58
#define RST 4
#define SYN 2

/* An IPv4 address is ::ffff:a.b.c.d, as on the wire. */
struct address {
	__u32 words[4];
};

struct pair {
	struct address local;
	struct address remote;
};

enum { LAST_CAME_IN = 1, SENT_PAYLOAD = 2, RECEIVED_PAYLOAD = 4 };

struct opening {
	__u64 first;
	__u32 legs;
	__u32 state;
};

struct rule {
	/* Monotonic nanoseconds below 2^63. Pairs that were established before `began` pass. */
	__u64 began;
	__u64 drops_at;
	__u64 ends_at;
	/* A bit of each IP protocol that it is for. */
	__u64 protocols[4];
	/* IP total lengths. */
	__u64 length_min;
	__u64 length_max;
	/* Source ports; the rest is above all ports. Without `has_ports` any. */
	__u32 ports[PORTS_MAX];
	__u32 has_ports;
	/* All of `set` are set, none of `clear`. */
	__u32 flags_set;
	__u32 flags_clear;
	__u32 only_fragments;
	/* Of `counts`. */
	__u32 slot;
	/* It is for what its address sends, not for what it gets. */
	__u32 is_outbound;
};

struct rules {
	struct rule rules[RULES_OF_ADDRESS];
};

struct count {
	/* What a rule matched and no established pair carried; what of it was dropped; what established pairs carried. */
	__u64 matched;
	__u64 matched_bytes;
	__u64 dropped;
	__u64 dropped_bytes;
	__u64 passed;
	__u64 passed_bytes;
};

struct filter_settings {
	/* Monotonic time of the sensor's last sign of life, and since when pairs are learned. */
	__u64 beat;
	__u64 since;
	/* Wall time minus the monotonic clock. */
	__u64 wall_offset;
};

struct dropped_minute {
	__u64 minute;
	/* On the way in, then on the way out. */
	__u64 packets[2];
	__u64 bytes[2];
};

struct dropped {
	struct dropped_minute minutes[MINUTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct filter_settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512);
	__type(key, struct address);
	__type(value, struct rules);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 512);
	__type(key, __u32);
	__type(value, struct count);
} counts SEC(".maps");

/* The sensor makes an entry for each address that it gives rules. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct address);
	__type(value, struct dropped);
} dropped SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct pair);
	__type(value, struct opening);
} openings SEC(".maps");

/* Since when a pair is established. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct pair);
	__type(value, __u64);
} pairs SEC(".maps");

/* Numbers of eight bytes: without CAP_PERFMON the verifier takes no smaller ones in place of a spilled pointer. */
struct packet {
	struct address source;
	struct address target;
	__u64 protocol;
	__u64 length;
	__u64 payload;
	__u64 is_fragment;
	/* It has the transport header: no fragment but the first one. */
	__u64 has_transport;
	__u64 source_port;
	__u64 flags;
	__u64 icmp_type;
	__u64 hop_limit;
	/* That a frame was merged from, and the IP total length of each. */
	__u64 packets;
	__u64 packet_length;
	__u64 is_outbound;
};

#include "segments.bpf.h"

/* Every read is by a helper, as in counter.bpf.c; that of XDP came with Linux 5.18. */
static __always_inline int load(void *frame, int is_xdp, __u32 at, void *to, __u32 bytes)
{
	return is_xdp ? bpf_xdp_load_bytes(frame, at, to, bytes) : bpf_skb_load_bytes(frame, at, to, bytes);
}

static __always_inline __u32 word(const __u8 *bytes)
{
	return bytes[0] << 8 | bytes[1];
}

/* What offload has merged; the transport header of `header` bytes is at `at`. */
static __always_inline void read_segments(struct __sk_buff *skb, struct packet *p, __u32 at, __u32 header, __u32 rest)
{
	__u64 size = skb->gso_size, packets = count_segments(skb, at, p->protocol, skb->len);

	if (packets <= 1)
		return;
	p->packets = packets;
	if (size > 0)
		p->packet_length = p->length - rest + header + size;
}

/* The transport header at `at`; `rest` bytes from there on belong to the packet. */
static __always_inline void read_transport(void *frame, int is_xdp, struct packet *p, __u32 at, __u32 rest)
{
	__u8 head[14] = {};

	if (p->protocol == TCP) {
		if (load(frame, is_xdp, at, head, 14) < 0)
			return;
		p->flags = head[13];
	} else if (load(frame, is_xdp, at, head, 4) < 0) {
		return;
	}
	p->has_transport = 1;
	p->source_port = word(head);
	p->icmp_type = head[0];
	/* A segment behind the opening is of a connection that both accepted; data of an opening prove nothing. */
	p->payload = p->protocol == TCP ? !(p->flags & (SYN | RST)) : rest > 8;
	if (!is_xdp)
		read_segments(frame, p, at, p->protocol == TCP ? head[12] >> 4 << 2 : 8, rest);
}

static __always_inline int read_ipv4(void *frame, int is_xdp, struct packet *p, __u32 at)
{
	__u8 ip[20];
	__u32 header, fragment;

	if (load(frame, is_xdp, at, ip, 20) < 0 || ip[0] >> 4 != 4)
		return 0;
	header = (ip[0] & 15) << 2;
	p->length = word(ip + 2);
	/* Left to offload. */
	if (!is_xdp && p->length == 0)
		p->length = 65535;
	if (header < 20 || p->length < header)
		return 0;
	p->protocol = ip[9];
	p->source.words[2] = p->target.words[2] = 0xffff0000;
	p->source.words[3] = *(__u32 *)(ip + 12);
	p->target.words[3] = *(__u32 *)(ip + 16);
	fragment = word(ip + 6);
	p->is_fragment = (fragment & 0x3fff) != 0;
	p->payload = p->packets = 1;
	p->packet_length = p->length;
	if ((fragment & 0x1fff) == 0)
		read_transport(frame, is_xdp, p, at + header, p->length - header);
	return 1;
}

static __always_inline int read_ipv6(void *frame, int is_xdp, struct packet *p, __u32 at)
{
	__u8 ip[40], extension[8];
	__u32 next, from = at + 40, offset = 0, end;

	if (load(frame, is_xdp, at, ip, 40) < 0 || ip[0] >> 4 != 6)
		return 0;
	p->length = 40 + word(ip + 4);
	p->hop_limit = ip[7];
	end = at + p->length;
	__builtin_memcpy(p->source.words, ip + 8, 16);
	__builtin_memcpy(p->target.words, ip + 24, 16);
	next = ip[6];
#pragma clang loop unroll(full)
	for (int i = 0; i < EXTENSIONS_MAX; i++) {
		/* Hop-by-hop options, routing, fragment, destination options. */
		if (next != 0 && next != 43 && next != 44 && next != 60)
			break;
		if (offset != 0 || load(frame, is_xdp, from, extension, 8) < 0)
			break;
		if (next == 44) {
			p->is_fragment = 1;
			offset = word(extension + 2) & 0xfff8;
			from += 8;
		} else {
			from += 8 + extension[1] * 8;
		}
		next = extension[0];
	}
	p->protocol = next;
	p->payload = p->packets = 1;
	p->packet_length = p->length;
	if (offset == 0)
		read_transport(frame, is_xdp, p, from, from < end ? end - from : 0);
	return 1;
}

/* False for what is not IP in Ethernet with two tags at most. */
static __always_inline int read_packet(void *frame, int is_xdp, struct packet *p)
{
	__u8 type[2];
	__u32 at = 12;

#pragma clang loop unroll(full)
	for (int i = 0; i < 3; i++) {
		if (load(frame, is_xdp, at, type, 2) < 0)
			return 0;
		if (word(type) != 0x8100 && word(type) != 0x88a8)
			break;
		at += 4;
	}
	if (word(type) == IPV4)
		return read_ipv4(frame, is_xdp, p, at + 2);
	return word(type) == IPV6 && read_ipv6(frame, is_xdp, p, at + 2);
}

/* Neighbour discovery: from this link, for it passed no router. */
static __always_inline int is_discovery(const struct packet *p)
{
	return p->protocol == ICMPV6 && p->hop_limit == 255 && p->icmp_type >= 133 && p->icmp_type <= 137;
}

/* 1 for zero. Rules are compared without branches: each one would double what the verifier has to follow. */
static __always_inline __u64 is_zero(__u64 value)
{
	return (((value | -value) >> 63) ^ 1) & 1;
}

/* Global, so that the verifier follows it once and not on each way to each call. */
__noinline __u64 is_matched(const struct rule *rule, const struct packet *p)
{
	__u64 bits = 0, ports, has_transport, set, clear, has_ports, only_fragments, is_outbound, port, allowed;

	if (!rule || !p)
		return 0;
	has_transport = p->has_transport;
	set = rule->flags_set;
	clear = rule->flags_clear;
	has_ports = rule->has_ports;
	only_fragments = rule->only_fragments;
	is_outbound = rule->is_outbound;
	/* Later fragments of a datagram have no ports; they go with the first one. */
	ports = (has_transport ^ 1) | (has_ports ^ 1);
#pragma clang loop unroll(full)
	for (int i = 0; i < PORTS_MAX; i++) {
		port = rule->ports[i];
		ports |= is_zero(port ^ p->source_port);
	}
#pragma clang loop unroll(full)
	for (__u64 i = 0; i < 4; i++)
		bits |= rule->protocols[i] & -is_zero((p->protocol >> 6) ^ i);
	allowed = (bits >> (p->protocol & 63)) & 1 & ports;
	allowed &= is_zero(set | clear) | (has_transport & is_zero((p->flags & set) ^ set) & is_zero(p->flags & clear));
	allowed &= ((only_fragments ^ 1) | p->is_fragment) & is_zero(is_outbound ^ p->is_outbound);
	return allowed & ((p->packet_length - rule->length_min) >> 63 ^ 1) &
	       ((rule->length_max - p->packet_length) >> 63 ^ 1);
}

/* Counts a packet that is dropped; 0 where its address has no counters. A function of its own, because the programs' stack is full. */
__noinline __u64 note_dropped(const struct address *local, const struct packet *p)
{
	__u32 zero = 0;
	struct filter_settings *of = bpf_map_lookup_elem(&settings, &zero);
	struct dropped_minute *minute;
	struct dropped *host;
	__u64 number;

	if (!of || !local || !p)
		return 0;
	host = bpf_map_lookup_elem(&dropped, local);
	if (!host)
		return 0;
	number = (bpf_ktime_get_ns() + of->wall_offset) / MINUTE;
	minute = &host->minutes[number & (MINUTES - 1)];
	if (minute->minute != number) {
		*minute = (struct dropped_minute){};
		minute->minute = number;
	}
	if (p->is_outbound) {
		minute->packets[1] += p->packets;
		minute->bytes[1] += p->length;
	} else {
		minute->packets[0] += p->packets;
		minute->bytes[0] += p->length;
	}
	return 1;
}

/*
 * True for a packet of an address with rules that is to be dropped, by the first rule of its direction that matches. A place without a rule has
 * ended.
 */
static __always_inline int is_dropped(struct rules *all, struct packet *p, const struct pair *pair, __u64 now)
{
	__u64 took = 0, began = 0, drops_at = 0, mask;
	struct count *count;
	__u64 *since;
	__u32 slot = 0;

#pragma clang loop unroll(full)
	for (int i = 0; i < RULES_OF_ADDRESS; i++) {
		const struct rule *rule = &all->rules[i];

		mask = -((now - rule->ends_at) >> 63 & is_matched(rule, p) & (took ^ 1));
		began |= rule->began & mask;
		drops_at |= rule->drops_at & mask;
		slot |= rule->slot & mask;
		took |= mask & 1;
	}
	count = bpf_map_lookup_elem(&counts, &slot);
	if (!took || !count)
		return 0;
	since = bpf_map_lookup_elem(&pairs, pair);
	if (since && *since < began) {
		count->passed += p->packets;
		count->passed_bytes += p->length;
		return 0;
	}
	count->matched += p->packets;
	count->matched_bytes += p->length;
	if (now < drops_at || !note_dropped(&pair->local, p))
		return 0;
	count->dropped += p->packets;
	count->dropped_bytes += p->length;
	return 1;
}

SEC("xdp")
int filter(struct xdp_md *frame)
{
	__u32 zero = 0;
	/* Exact to a tick of the kernel, a hundredth of a second at most. */
	__u64 now = bpf_ktime_get_coarse_ns();
	struct filter_settings *of = bpf_map_lookup_elem(&settings, &zero);
	struct packet p = {};
	struct pair pair;
	struct rules *all;
	struct opening *opening;

	if (!of || (__s64)(now - of->beat) > (__s64)LEARNING_PATIENCE || !read_packet(frame, 1, &p) ||
	    is_discovery(&p))
		return XDP_PASS;
	pair.local = p.target;
	pair.remote = p.source;
	all = bpf_map_lookup_elem(&rules, &pair.local);
	if (all && (__s64)(now - of->beat) <= (__s64)FILTER_PATIENCE && is_dropped(all, &p, &pair, now))
		return XDP_DROP;
	opening = bpf_map_lookup_elem(&openings, &pair);
	if (opening) {
		if (!(opening->state & LAST_CAME_IN))
			opening->legs++;
		opening->state |= LAST_CAME_IN | (p.payload ? RECEIVED_PAYLOAD : 0);
	}
	return XDP_PASS;
}

SEC("tc")
int learn(struct __sk_buff *skb)
{
	__u32 zero = 0;
	__u64 now = bpf_ktime_get_coarse_ns();
	struct filter_settings *of = bpf_map_lookup_elem(&settings, &zero);
	struct packet p = { .is_outbound = 1 };
	struct pair pair;
	struct rules *all;
	struct opening *opening, begun = { .first = now, .legs = 1 };
	__u32 conversed = SENT_PAYLOAD | RECEIVED_PAYLOAD;

	if (!of || (__s64)(now - of->beat) > (__s64)LEARNING_PATIENCE || !read_packet(skb, 0, &p))
		return TC_ACT_UNSPEC;
	pair.local = p.source;
	pair.remote = p.target;
	all = bpf_map_lookup_elem(&rules, &pair.local);
	if (all && (__s64)(now - of->beat) <= (__s64)FILTER_PATIENCE && !is_discovery(&p) &&
	    is_dropped(all, &p, &pair, now))
		return TC_ACT_SHOT;
	if ((p.protocol == TCP && (p.flags & RST)) || (p.protocol == ICMP && p.icmp_type == 3) ||
	    (p.protocol == ICMPV6 && p.icmp_type == 1))
		return TC_ACT_UNSPEC;
	if (bpf_map_lookup_elem(&pairs, &pair))
		return TC_ACT_UNSPEC;
	opening = bpf_map_lookup_elem(&openings, &pair);
	if (!opening) {
		begun.state = p.payload ? SENT_PAYLOAD : 0;
		bpf_map_update_elem(&openings, &pair, &begun, BPF_ANY);
		return TC_ACT_UNSPEC;
	}
	if (opening->state & LAST_CAME_IN)
		opening->legs++;
	opening->state = (opening->state & ~LAST_CAME_IN) | (p.payload ? SENT_PAYLOAD : 0);
	if (opening->legs >= LEGS_MIN && (opening->state & conversed) == conversed &&
	    now - opening->first >= ESTABLISHED_AFTER) {
		bpf_map_update_elem(&pairs, &pair, &now, BPF_ANY);
		bpf_map_delete_elem(&openings, &pair);
	}
	return TC_ACT_UNSPEC;
}

char SOURCE[] SEC("source") = SOURCE_HASH;
char LICENSE[] SEC("license") = "Dual MIT/GPL";
