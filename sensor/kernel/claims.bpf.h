/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Counts what servers claim that is not theirs, by sender, claim and address. Of a packet the source address comes first; then what it
 * says of others: ARP and neighbor advertisements for an address of another server, router advertisements, redirects and messages of
 * DHCP servers. Other senders, such as routers, are the engine's.
 */
#define ROUTER_ADVERTISEMENT4 9
#define ROUTER_ADVERTISEMENT 134
#define NEIGHBOR_ADVERTISEMENT 136
#define REDIRECT 137

/* True for a packet whose content may claim something: read further only where a server sent it. */
static __always_inline int may_claim(const struct packet *p)
{
	return p->source.version == 4 ? p->protocol == UDP || p->protocol == ICMP : p->protocol != TCP;
}

/* True for addresses of the Internet. Private ones may be used by any number of servers. */
static __always_inline int is_global(const struct address *address)
{
	__u32 first = address->words[3] & 255, second = address->words[3] >> 8 & 255;

	if (address->version == 6)
		return (address->words[0] & 0xe0) == 0x20;
	if (first == 0 || first == 10 || first == 127 || first >= 224)
		return 0;
	if (first == 100 && (second & 0xc0) == 64)
		return 0;
	if (first == 172 && (second & 0xf0) == 16)
		return 0;
	return !(first == 169 && second == 254) && !(first == 192 && second == 168);
}

/* True where the address that the packet names has owners, and it or who sent it names another MAC. */
static __always_inline int is_of_others(const struct scratch *room, __u64 sender)
{
	struct owner *owner = bpf_map_lookup_elem(&owners, &room->claim.address);

	return owner && !(has_mac(owner, sender) && has_mac(owner, room->owner_mac));
}

static __always_inline __u32 read_arp(struct __sk_buff *skb, struct scratch *room, __u64 sender)
{
	__u32 at = room->transport.start;
	__u8 head[6] = {};

	/* Ethernet and IPv4, with addresses of their lengths. */
	if (bpf_skb_load_bytes(skb, at, head, 6) < 0 || head[1] != 1 || head[2] != 8 || head[4] != 6 || head[5] != 4)
		return NO_CLAIM;
	__builtin_memset(&room->claim.address, 0, sizeof(room->claim.address));
	room->claim.address.version = 4;
	room->owner_mac = 0;
	if (bpf_skb_load_bytes(skb, at + 8, &room->owner_mac, 6) < 0 ||
	    bpf_skb_load_bytes(skb, at + 14, &room->claim.address.words[3], 4) < 0)
		return NO_CLAIM;
	return is_of_others(room, sender) ? CLAIM_ARP : NO_CLAIM;
}

static __always_inline __u32 read_advertisement(struct __sk_buff *skb, struct scratch *room, __u64 sender)
{
	__u32 at = room->transport.at;

	room->claim.address.version = 6;
	if (bpf_skb_load_bytes(skb, at + 8, room->claim.address.words, 16) < 0)
		return NO_CLAIM;
	room->owner_mac = sender;
	/* The option with the target's MAC comes first. */
	if (word_at(skb, at + 24) == 0x0201) {
		room->owner_mac = 0;
		bpf_skb_load_bytes(skb, at + 26, &room->owner_mac, 6);
	}
	return is_of_others(room, sender) ? CLAIM_NEIGHBOR : NO_CLAIM;
}

/* What the content of the packet claims. */
static __always_inline __u32 read_claim(struct __sk_buff *skb, struct scratch *room, __u64 sender)
{
	struct transport *t = &room->transport;
	__u32 type;

	if (t->version == 0)
		return read_arp(skb, room, sender);
	find_transport(skb, t);
	if (t->fragment == 2 || t->at + 4 > t->end)
		return NO_CLAIM;
	if (t->protocol == UDP) {
		__u32 from = word_at(skb, t->at), to = word_at(skb, t->at + 2);

		if (t->version == 4)
			return from == 67 || to == 68 ? CLAIM_DHCP : NO_CLAIM;
		return from == 547 || to == 546 ? CLAIM_DHCP : NO_CLAIM;
	}
	type = byte_at(skb, t->at);
	if (t->version == 4)
		return t->protocol == ICMP && type == ROUTER_ADVERTISEMENT4 ? CLAIM_ROUTER : NO_CLAIM;
	if (t->protocol != ICMP6)
		return NO_CLAIM;
	if (type == ROUTER_ADVERTISEMENT || type == REDIRECT)
		return CLAIM_ROUTER;
	return type == NEIGHBOR_ADVERTISEMENT ? read_advertisement(skb, room, sender) : NO_CLAIM;
}

/* The kernel takes the outermost VLAN off a frame that comes in. */
static __always_inline __u64 vlan_of(struct __sk_buff *skb, const struct scratch *room)
{
	__u64 vlan = skb->vlan_present ? skb->vlan_tci & 0xfff : 0;

	return vlan ? vlan : room->link.vlan;
}

static __always_inline struct spoofed *find_spoofed(struct scratch *room)
{
	struct spoofed *row = bpf_map_lookup_elem(&spoofed, &room->claim);

	if (row)
		return row;
	/* Another processor may have added it meanwhile. */
	bpf_map_update_elem(&spoofed, &room->claim, &room->none_spoofed, BPF_NOEXIST);
	return bpf_map_lookup_elem(&spoofed, &room->claim);
}

static __always_inline void add_spoofed(struct scratch *room)
{
	__u32 zero = 0;
	struct spoofed *row = find_spoofed(room);
	struct total *all;
	struct spoofed_minute *counts;

	if (row) {
		counts = &row->minutes[room->minute & (MINUTES - 1)];
		if (counts->minute != room->minute) {
			counts->packets = 0;
			counts->bytes = 0;
			counts->minute = room->minute;
		}
		counts->packets += room->packets;
		counts->bytes += room->length;
		return;
	}
	all = bpf_map_lookup_elem(&totals, &zero);
	if (!all)
		return;
	all->minutes[room->minute & (MINUTES - 1)].spoofed_packets += room->packets;
	all->minutes[room->minute & (MINUTES - 1)].spoofed_bytes += room->length;
}

/* Counts the packet where a server claims something with it. A global function, for the same reason as `read_link_header`. */
__noinline int count_claim(struct __sk_buff *skb)
{
	__u32 zero = 0, claim;
	__u64 sender = 0;
	struct scratch *room = bpf_map_lookup_elem(&scratch, &zero);

	if (!room)
		return 0;
	if (bpf_skb_load_bytes(skb, room->mac_at, &sender, 6) < 0 || !bpf_map_lookup_elem(&senders, &sender))
		return 0;
	claim = room->claim.claim;
	if (claim == CLAIM_NO_ADDRESS && !is_global(&room->claim.address))
		claim = NO_CLAIM;
	if (claim == NO_CLAIM)
		claim = read_claim(skb, room, sender);
	if (claim == NO_CLAIM)
		return 0;
	if (claim == CLAIM_NO_ADDRESS || claim == CLAIM_ROUTER || claim == CLAIM_DHCP)
		__builtin_memset(&room->claim.address, 0, sizeof(room->claim.address));
	room->claim.claim = claim;
	room->claim.sender = sender | vlan_of(skb, room) << 48;
	add_spoofed(room);
	return 0;
}

/* `claim`: what the source address claims; its content is read where that is nothing. */
static __always_inline void note_claim(struct __sk_buff *skb, struct packet *p, struct scratch *room, __u32 minute, __u32 claim)
{
	room->claim.claim = claim;
	room->mac_at = p->mac_at;
	room->packets = p->packets;
	room->length = p->length;
	room->minute = minute;
	count_claim(skb);
}
