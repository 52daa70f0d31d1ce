// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Counts the frames of an interface in the kernel, at its tc hooks of both directions, by local address and UTC minute.
 *
 * The same numbers as the engine (sensor/capture): every frame has one verdict (IP, not IP, dropped), bytes are IP total
 * lengths of the outermost header, merged frames count as their segments, and what a MAC sends from an address of others
 * counts for the receiver alone, and apart (claims.bpf.h). `kernel-equals-engine` compares both frame by frame. Link headers are read in the first
 * LINK_BYTES_MAX bytes, here and there (`linkBytesMax` in sensor/capture/decode).
 *
 * Counters are kept for the last four minutes, each stamped with its own: nobody has to clear them, and a minute that ended
 * while no sensor ran can still be read. What the detector reads once a second (kinds of packets) only grows: a second is the
 * difference of two readings. An address has a slot, with counters of its own for each processor, which the sensor has in its memory.
 * layout.ts describes the same structures.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#define LINK_BYTES_MAX 1024
/* The shortest link header; a pseudowire's control word has as many bytes. */
#define LINK_HEADER_BYTES_MIN 4
#define MINUTES 4
#define MACS_MAX 8
#define NANOSECONDS_OF_MINUTE 60000000000ULL
/* Counting ends an hour after the last sign of life of a sensor. */
#define BEAT_PATIENCE (60 * NANOSECONDS_OF_MINUTE)

#define IPV4 0x0800
#define ARP 0x0806
#define IPV6 0x86dd
#define TCP 6
#define UDP 17

/* An IPv4 address is in the last word, as on the wire. */
struct address {
	__u32 version;
	__u32 words[4];
};

struct prefix {
	__u32 bits;
	struct address address;
};

struct host_minute {
	__u32 minute;
	__u32 packets;
	__u64 rx_bytes;
	__u64 tx_bytes;
	__u64 unused;
};

/* Numbers of `enum kind` are lower. */
#define KINDS 16

/* Bytes are kept apart where a threshold is of bytes. */
enum volume { OTHER_BYTES, REFLECTION_BYTES, DATAGRAM_BYTES, VOLUMES = 4 };

enum direction { INBOUND, OUTBOUND, DIRECTIONS };

/* Of one processor. Bytes and packets by kind are of all time since the slot was taken; packets begin again after 2^32. Five lines of the
 * cache: of a packet one is touched, and two more where the detector reads kinds. */
struct host {
	__u64 bytes[DIRECTIONS][VOLUMES];
	__u32 packets[DIRECTIONS][KINDS];
	struct host_minute minutes[MINUTES];
};

/* Whose slot it is; version 0 where it is free. */
struct name {
	struct address address;
	__u32 unused;
};

struct total_minute {
	__u32 minute;
	/* Frames merged from an unknown number of packets. */
	__u32 merged_frames;
	__u64 packets;
	__u64 ip_packets;
	__u64 ip_bytes;
	__u64 non_ip_packets;
	__u64 dropped;
	/* Packets of a local address that found no room. */
	__u64 no_room;
	/* Spoofed packets that found no room. */
	__u64 spoofed_packets;
	__u64 spoofed_bytes;
};

struct total {
	struct total_minute minutes[MINUTES];
	/* The open minute, when it began by the monotonic clock, and the clock by which that was found. */
	__u64 began;
	__u64 wall_offset;
	__u64 minute;
	/* Since the program was attached: IP packets, and those of them without a local address. */
	__u64 seen_packets;
	__u64 seen_bytes;
	__u64 foreign_packets;
	__u64 foreign_bytes;
	/* Packets of a local address that found no room. */
	__u64 left_out;
};

struct settings {
	/* Wall time minus the monotonic clock, the monotonic time of the sensor's last sign of life; nanoseconds. */
	__u64 wall_offset;
	__u64 beat;
	/* Monotonic time since which every frame was counted; the program does not need it. */
	__u64 since;
	/* Frames begin with an Ethernet header; otherwise with an IP header. */
	__u32 is_ethernet;
	/* There are prefixes of this version, and owners of addresses. */
	__u32 has_prefixes4;
	__u32 has_prefixes6;
	__u32 has_owners;
	/* The detector reads kinds. */
	__u32 counts_kinds;
	/* Slots that there are. */
	__u32 slots;
};

/* The six bytes of a MAC are the first ones of its word. */
struct owner {
	__u64 count;
	__u64 macs[MACS_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct total);
} totals SEC(".maps");

/* Slots of addresses. The sensor adds those that it knows; an address of a local prefix is added with its first packet. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct address);
	__type(value, __u32);
} hosts SEC(".maps");

/* Of IPv4 addresses that had packets, by their last bits: the address, then one more than its slot. In the map of all it takes longer. */
#define RECENT 16384
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, RECENT);
	__type(key, __u32);
	__type(value, __u64);
} recent SEC(".maps");

/* Slots without an address. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 8192);
	__type(value, __u32);
} vacant SEC(".maps");

/* By slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct name);
} names SEC(".maps");

/* All slots of a processor, then those of the next one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct host);
} counters SEC(".maps");

/* A bit for each start of an address that local ones, prefixes or owned ones have: by the first two bytes of IPv4, then by the first four of
 * IPv6. Most packets have one end elsewhere, which needs no search. */
#define NEAR_WORDS 1024
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2 * NEAR_WORDS);
	__type(key, __u32);
	__type(value, __u64);
} near SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct prefix);
	__type(value, __u32);
} prefixes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct address);
	__type(value, struct owner);
} owners SEC(".maps");

/* MACs of servers: the first six bytes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u32);
} senders SEC(".maps");

/* What a server claims that is not its own: the source address of its packet, or what ARP and the like say of others. */
enum claim { NO_CLAIM, CLAIM_SOURCE, CLAIM_NO_ADDRESS, CLAIM_ARP, CLAIM_NEIGHBOR, CLAIM_ROUTER, CLAIM_DHCP };

struct claim_key {
	/* The MAC in the first six bytes, then the VLAN. */
	__u64 sender;
	__u32 claim;
	/* Of whom; version 0 where it is of nobody. */
	struct address address;
};

struct spoofed_minute {
	__u32 minute;
	__u32 packets;
	__u64 bytes;
};

struct spoofed {
	struct spoofed_minute minutes[MINUTES];
};

/* As many rows as a minute has for them, beside the one for the rest. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 63);
	__type(key, struct claim_key);
	__type(value, struct spoofed);
} spoofed SEC(".maps");

/* Where the next header is, and of what kind it is. */
enum { LINK_ETHERNET, LINK_TYPE, LINK_LLC, LINK_MPLS, LINK_PPP, LINK_IP, LINK_IPV4, LINK_IPV6, LINK_NOT_IP, LINK_DROPPED };

struct link {
	__u32 kind;
	__u32 type;
	__u32 at;
	__s32 mac_at;
	/* The first one that the frame still has. */
	__u32 vlan;
};

/* Where the transport header is, and of which protocol. */
struct transport {
	__u32 at;
	/* Where the captured part of the packet ends. */
	__u32 end;
	__u32 protocol;
	/* 0 for a whole packet, 1 for the first fragment of one, 2 for a later one. */
	__u32 fragment;
	/* Where the IP header begins, what it says of the length, its version, and the first byte of the target's address of either version. */
	__u32 start;
	__u32 length;
	__u32 version;
	__u32 target4;
	__u32 target6;
};

/* Room of a processor. */
struct scratch {
	struct link link;
	struct transport transport;
	/* Of the packet, and of its bytes: `enum kind`, `enum volume`. An index that the verifier may know on one way and not on another is
	 * refused without CAP_PERFMON; of what is read from memory it knows nothing. */
	__u32 kind;
	__u32 volume;
	/* What is known of a packet that may claim something. */
	struct claim_key claim;
	__u64 owner_mac;
	__u64 length;
	__u32 packets;
	__u32 minute;
	__s32 mac_at;
	struct spoofed none_spoofed;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratch SEC(".maps");

/* What is read of a packet. */
struct packet {
	struct address source;
	struct address target;
	__u64 length;
	__u32 packets;
	/* Position of the source MAC; -1 without an Ethernet header. */
	__s32 mac_at;
	/* Position of the IP header. */
	__u32 at;
	/* What follows it. */
	__u32 protocol;
};

enum verdict { DROPPED, NOT_IP, IS_IP, GOES_ON };

/* Every read is by a helper: the verifier allows no arithmetic on pointers where it must think of speculation (no CAP_PERFMON). */
static __always_inline __u32 byte_at(struct __sk_buff *skb, __u32 at)
{
	__u8 byte = 0;

	bpf_skb_load_bytes(skb, at, &byte, 1);
	return byte;
}

static __always_inline __u32 word_at(struct __sk_buff *skb, __u32 at)
{
	__u8 bytes[2] = {};

	bpf_skb_load_bytes(skb, at, bytes, 2);
	return bytes[0] << 8 | bytes[1];
}

#include "link-headers.bpf.h"

static __always_inline void take_ipv4(struct packet *p, __u32 source, __u32 target)
{
	p->source.version = p->target.version = 4;
	p->source.words[3] = source;
	p->target.words[3] = target;
}

/* The total length of an IPv4 packet at `at` of a frame; 0 when it is malformed. */
static __always_inline __u64 length4(const __u8 *ip, __u32 at, __u32 end)
{
	__u32 header = (ip[0] & 15) << 2, total = ip[2] << 8 | ip[3];

	if (ip[0] >> 4 != 4 || header < 20)
		return 0;
	/* A sender that leaves the length to offload is trusted for the other fixed fields only. */
	if (total == 0)
		return end - at;
	return total < header || at + header > end ? 0 : total;
}

/* Offload leaves the payload length zero before TCP and UDP. A jumbogram has its length in a hop-by-hop option. */
static __always_inline __u64 length6(struct __sk_buff *skb, const __u8 *ip, __u32 at, __u32 end)
{
	__u32 payload = ip[4] << 8 | ip[5], next = ip[6], on_wire = end - at;
	__u8 option[8];

	if (payload != 0)
		return 40 + payload;
	if ((next == TCP && on_wire >= 60) || (next == UDP && on_wire >= 48))
		return on_wire;
	if (next != 0 || on_wire < 48 || bpf_skb_load_bytes(skb, at + 40, option, 8) < 0)
		return 40;
	if (option[2] != 0xc2 || option[3] != 4)
		return 40;
	return 40 + ((__u64)option[4] << 24 | option[5] << 16 | option[6] << 8 | option[7]);
}

#include "segments.bpf.h"

/* Reads the IP header at `at`. */
static __noinline int read_ip(struct __sk_buff *skb, struct packet *p, __u32 at, __u32 is_ipv4)
{
	__u32 end = skb->len;
	__u8 ip[40];

	if (at > LINK_BYTES_MAX)
		return DROPPED;
	p->at = at;
	if (is_ipv4) {
		if (at + 20 > end || bpf_skb_load_bytes(skb, at, ip, 20) < 0)
			return DROPPED;
		p->length = length4(ip, at, end);
		if (p->length == 0)
			return DROPPED;
		take_ipv4(p, *(__u32 *)(ip + 12), *(__u32 *)(ip + 16));
		p->protocol = ip[9];
		p->packets = count_segments(skb, at + ((ip[0] & 15) << 2), p->protocol, end);
		return IS_IP;
	}
	if (at + 40 > end || bpf_skb_load_bytes(skb, at, ip, 40) < 0 || ip[0] >> 4 != 6)
		return DROPPED;
	p->length = length6(skb, ip, at, end);
	p->source.version = p->target.version = 6;
	__builtin_memcpy(p->source.words, ip + 8, 16);
	__builtin_memcpy(p->target.words, ip + 24, 16);
	p->protocol = ip[6];
	p->packets = count_segments(skb, at + 40, p->protocol, end);
	return IS_IP;
}

/* The commonest frames, without copies: IP directly in Ethernet. Returns -1 for any other. */
static __always_inline int read_plain(struct __sk_buff *skb, struct packet *p)
{
	const __u8 *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	const __u8 *ip = data + 14;
	__u32 type, end = skb->len;

	if (data + 14 + 20 > data_end)
		return -1;
	type = data[12] << 8 | data[13];
	p->mac_at = 6;
	p->at = 14;
	if (type == IPV4) {
		p->length = length4(ip, 14, end);
		if (p->length == 0)
			return DROPPED;
		take_ipv4(p, *(__u32 *)(ip + 12), *(__u32 *)(ip + 16));
		p->protocol = ip[9];
		p->packets = count_segments(skb, 14 + ((ip[0] & 15) << 2), p->protocol, end);
		return IS_IP;
	}
	if (type != IPV6 || data + 14 + 40 > data_end || ip[0] >> 4 != 6)
		return -1;
	p->source.version = p->target.version = 6;
	__builtin_memcpy(p->source.words, ip + 8, 16);
	__builtin_memcpy(p->target.words, ip + 24, 16);
	p->protocol = ip[6];
	p->packets = count_segments(skb, 14 + 40, p->protocol, end);
	p->length = length6(skb, ip, 14, end);
	return IS_IP;
}

static __always_inline int has_mac(const struct owner *owner, __u64 mac)
{
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < MACS_MAX; i++)
		if (i < owner->count && owner->macs[i] == mac)
			return 1;
	return 0;
}

/* True when the source address has owners, none of which sent the packet. */
static __always_inline int is_spoofed(struct __sk_buff *skb, struct packet *p)
{
	struct owner *owner = bpf_map_lookup_elem(&owners, &p->source);
	__u64 mac = 0;

	if (!owner || p->mac_at < 0 || bpf_skb_load_bytes(skb, p->mac_at, &mac, 6) < 0)
		return 0;
	return !has_mac(owner, mac);
}

/* Takes a slot for the address; without a free one nothing changes. */
static __noinline int add_host(struct address *address)
{
	__u32 slot;
	struct name *name;

	if (bpf_map_pop_elem(&vacant, &slot))
		return 0;
	name = bpf_map_lookup_elem(&names, &slot);
	if (!name)
		return 0;
	name->address = *address;
	/* Another processor may have added it meanwhile. */
	if (bpf_map_update_elem(&hosts, address, &slot, BPF_NOEXIST)) {
		name->address.version = 0;
		bpf_map_push_elem(&vacant, &slot, 0);
	}
	return 0;
}

static __always_inline int is_near(const struct address *address)
{
	__u32 first = address->words[0], start, word;
	__u64 *bits;

	start = address->version == 4 ? address->words[3] & 0xffff : (first ^ first >> 16) & 0xffff;
	word = (start >> 6) + (address->version == 4 ? 0 : NEAR_WORDS);
	bits = bpf_map_lookup_elem(&near, &word);
	return bits && *bits >> (start & 63) & 1;
}

/* One more than the slot of an address that may have none yet; 0 where it gets none. */
static __always_inline __u32 search_slot(struct address *address, struct settings *now, struct total *all,
					 struct total_minute *total, __u32 packets)
{
	__u32 *slot = bpf_map_lookup_elem(&hosts, address);
	struct prefix prefix = { .bits = 160 };

	if (slot)
		return *slot + 1;
	if (!(address->version == 4 ? now->has_prefixes4 : now->has_prefixes6))
		return 0;
	prefix.address = *address;
	if (!bpf_map_lookup_elem(&prefixes, &prefix))
		return 0;
	add_host(address);
	slot = bpf_map_lookup_elem(&hosts, address);
	if (slot)
		return *slot + 1;
	total->no_room += packets;
	all->left_out += packets;
	return 0;
}

static __always_inline struct host *find_host(struct address *address, struct settings *now, struct total *all,
					      struct total_minute *total, __u32 packets)
{
	__u32 last = address->words[3], slot = 0, place, index;
	__u64 *known;

	if (address->version == 4) {
		place = last >> 24 | (last >> 8 & (RECENT - 1) & 0xff00);
		known = bpf_map_lookup_elem(&recent, &place);
		if (!known)
			return 0;
		if (*known >> 32 == last)
			slot = *known;
		if (slot == 0) {
			slot = search_slot(address, now, all, total, packets);
			if (slot == 0)
				return 0;
			*known = (__u64)last << 32 | slot;
		}
	} else {
		slot = search_slot(address, now, all, total, packets);
		if (slot == 0)
			return 0;
	}
	index = slot - 1 + now->slots * bpf_get_smp_processor_id();
	return bpf_map_lookup_elem(&counters, &index);
}

static __always_inline struct host_minute *open_minute(struct host *host, __u32 minute)
{
	struct host_minute *counts = &host->minutes[minute & (MINUTES - 1)];

	if (counts->minute != minute) {
		__builtin_memset(counts, 0, sizeof(*counts));
		counts->minute = minute;
	}
	return counts;
}

static __always_inline int is_same(const struct address *a, const struct address *b)
{
	return a->words[3] == b->words[3] && a->words[2] == b->words[2] && a->words[1] == b->words[1] &&
	       a->words[0] == b->words[0];
}

#include "packet-kinds.bpf.h"
#include "claims.bpf.h"

static __always_inline void add_kind(struct host *host, int direction, struct packet *p, struct scratch *room)
{
	host->packets[direction][room->kind & (KINDS - 1)] += p->packets;
	host->bytes[direction][room->volume & (VOLUMES - 1)] += p->length;
}

/*
 * Each host is used where it is found. Asked for once more, one that is known to be none would be used as a number where a processor guesses
 * wrong, which the verifier refuses without CAP_PERFMON.
 */
static __always_inline void count_hosts(struct __sk_buff *skb, struct packet *p, struct settings *now, __u32 minute,
					struct total *all, struct total_minute *total, struct scratch *room)
{
	struct host *host;
	struct host_minute *counts;
	__u64 is_local = 0, no_room = total->no_room;
	__u32 claim = NO_CLAIM;

	room->transport.start = p->at;
	room->transport.length = p->length;
	room->transport.version = p->source.version;
	room->transport.target4 = p->target.words[3] & 255;
	room->transport.target6 = p->target.words[0] & 255;
	if (!is_near(&p->source)) {
		if (p->source.version == 4 ? now->has_prefixes4 : now->has_prefixes6)
			claim = CLAIM_NO_ADDRESS;
	} else if (now->has_owners && is_spoofed(skb, p)) {
		claim = CLAIM_SOURCE;
	} else {
		host = find_host(&p->source, now, all, total, p->packets);
		if (host) {
			is_local = 1;
			counts = open_minute(host, minute);
			counts->packets += p->packets;
			counts->tx_bytes += p->length;
			if (now->counts_kinds) {
				read_kind(skb);
				add_kind(host, OUTBOUND, p, room);
			}
			if (is_same(&p->source, &p->target)) {
				counts->rx_bytes += p->length;
				if (now->counts_kinds)
					add_kind(host, INBOUND, p, room);
				return;
			}
		} else if (total->no_room == no_room && (p->source.version == 4 ? now->has_prefixes4 : now->has_prefixes6)) {
			claim = CLAIM_NO_ADDRESS;
		}
	}
	if (now->has_owners && (claim != NO_CLAIM || may_claim(p))) {
		room->claim.address = p->source;
		note_claim(skb, p, room, minute, claim);
	}
	host = is_near(&p->target) ? find_host(&p->target, now, all, total, p->packets) : 0;
	if (host) {
		counts = open_minute(host, minute);
		counts->packets += p->packets;
		counts->rx_bytes += p->length;
		if (now->counts_kinds) {
			if (!is_local)
				read_kind(skb);
			add_kind(host, INBOUND, p, room);
		}
	} else if (!is_local) {
		all->foreign_packets += p->packets;
		all->foreign_bytes += p->length;
	}
}

/* Turns the minute. A frame costs no division unless it is the first one of its minute. */
static __always_inline __u32 find_minute(struct total *all, __u64 now_ns, __u64 wall_offset)
{
	if (now_ns - all->began >= NANOSECONDS_OF_MINUTE || all->wall_offset != wall_offset) {
		all->minute = (now_ns + wall_offset) / NANOSECONDS_OF_MINUTE;
		all->began = all->minute * NANOSECONDS_OF_MINUTE - wall_offset;
		all->wall_offset = wall_offset;
	}
	return all->minute;
}

SEC("tc")
int count(struct __sk_buff *skb)
{
	__u32 zero = 0, minute;
	/* Exact to a tick of the kernel, a hundredth of a second at most. */
	__u64 now_ns = bpf_ktime_get_coarse_ns();
	struct settings *now = bpf_map_lookup_elem(&settings, &zero);
	struct total *all = bpf_map_lookup_elem(&totals, &zero);
	struct total_minute *total;
	struct scratch *room = bpf_map_lookup_elem(&scratch, &zero);
	struct packet p = {};
	int verdict = -1;

	if (!now || !all || !room || (__s64)(now_ns - now->beat) > (__s64)BEAT_PATIENCE)
		return TC_ACT_UNSPEC;
	minute = find_minute(all, now_ns, now->wall_offset);
	total = &all->minutes[minute & (MINUTES - 1)];
	if (total->minute != minute) {
		__builtin_memset(total, 0, sizeof(*total));
		total->minute = minute;
	}
	room->link.vlan = 0;
	if (now->is_ethernet)
		verdict = read_plain(skb, &p);
	if (verdict < 0) {
		room->link.kind = now->is_ethernet ? LINK_ETHERNET : LINK_IP;
		room->link.at = 0;
		room->link.mac_at = -1;
		verdict = find_ip(skb);
		p.mac_at = room->link.mac_at;
		if (verdict == IS_IP)
			verdict = read_ip(skb, &p, room->link.at, room->link.kind == LINK_IPV4);
	}
	if (verdict != IS_IP)
		p.packets = skb->gso_segs > 0 ? skb->gso_segs : skb->gso_size == 0;
	if (p.packets == 0) {
		total->merged_frames++;
		p.packets = 1;
	}
	total->packets += p.packets;
	if (verdict == IS_IP) {
		total->ip_packets += p.packets;
		total->ip_bytes += p.length;
		all->seen_packets += p.packets;
		all->seen_bytes += p.length;
		count_hosts(skb, &p, now, minute, all, total, room);
	} else if (verdict == NOT_IP) {
		total->non_ip_packets += p.packets;
		if (now->has_owners && room->link.type == ARP) {
			room->transport.start = room->link.at;
			room->transport.version = 0;
			note_claim(skb, &p, room, minute, NO_CLAIM);
		}
	} else {
		total->dropped += p.packets;
	}
	return TC_ACT_UNSPEC;
}

char SOURCE[] SEC("source") = SOURCE_HASH;
char LICENSE[] SEC("license") = "Dual MIT/GPL";
