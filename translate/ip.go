package translate

import "strings"

// ipv4 and ipv6 are addresses in network order.
type (
	ipv4 uint32
	ipv6 [8]uint16
)

// parseIPv4 reads four decimal numbers without leading zeros, and nothing else.
func parseIPv4(host string) (ip ipv4, ok bool) {
	parts := strings.Split(host, ".")
	if len(parts) != 4 {
		return 0, false
	}
	for _, part := range parts {
		n, ok := parseDigits(part, 10, 255)
		if !ok || len(part) > 1 && part[0] == '0' {
			return 0, false
		}
		ip = ip<<8 | ipv4(n)
	}
	return ip, true
}

// parseIPv6 reads the text form of RFC 4291, 2.2, without a zone.
func parseIPv6(host string) (ip ipv6, ok bool) {
	head, tail, short := strings.Cut(host, "::")
	front, ok := hexGroups(head)
	if !ok {
		return ip, false
	}
	back, ok := hexGroups(tail)
	switch {
	case !ok, strings.Contains(tail, "::"):
		return ip, false
	case short && len(front)+len(back) > 7, !short && len(front) != 8:
		return ip, false
	}
	copy(ip[:], front)
	copy(ip[8-len(back):], back)
	return ip, true
}

// hexGroups reads groups of hexadecimal digits parted by colons; the last two
// may be spelled as an IPv4 address.
func hexGroups(text string) (groups []uint16, ok bool) {
	if text == "" {
		return nil, true
	}
	fields := strings.Split(text, ":")
	for i, field := range fields {
		if i == len(fields)-1 && strings.Contains(field, ".") {
			v4, ok := parseIPv4(field)
			return append(groups, uint16(v4>>16), uint16(v4)), ok && len(groups) <= 6
		}
		n, ok := parseDigits(field, 16, 0xFFFF)
		if !ok || len(field) > 4 || len(groups) == 8 {
			return nil, false
		}
		groups = append(groups, uint16(n))
	}
	return groups, true
}

// parseDigits reads digits of a base up to most.
func parseDigits(text string, base, most uint32) (n uint32, ok bool) {
	for i := range len(text) {
		digit := uint32(text[i] - '0')
		if c := text[i] | 0x20; base == 16 && c-'a' <= 5 {
			digit = uint32(c-'a') + 10
		} else if text[i]-'0' > 9 {
			return 0, false
		}
		if n = n*base + digit; n > most {
			return 0, false
		}
	}
	return n, len(text) > 0
}

// block4 is an address block: a prefix and its length in bits.
type block4 struct {
	prefix ipv4
	bits   int
}

// notPublic4 are the blocks of the IANA special-purpose registry, multicast, and
// one public number with a private service behind it (Azure's host agent).
var notPublic4 = [...]block4{
	{0x00000000, 8}, {0x0A000000, 8}, {0x64400000, 10}, {0x7F000000, 8}, {0xA83F8110, 32},
	{0xA9FE0000, 16}, {0xAC100000, 12}, {0xC0000000, 24}, {0xC0000200, 24}, {0xC0586300, 24},
	{0xC0A80000, 16}, {0xC6120000, 15}, {0xC6336400, 24}, {0xCB007100, 24}, {0xE0000000, 4}, {0xF0000000, 4},
}

func (ip ipv4) public() bool {
	for _, b := range notPublic4 {
		if ip>>(32-b.bits) == b.prefix>>(32-b.bits) {
			return false
		}
	}
	return true
}

// public: of IPv6 only 2000::/3 is global unicast, without the protocol blocks
// 2001::/23, documentation (2001:db8::/32, 3fff::/20) and 6to4 (2002::/16).
func (ip ipv6) public() bool {
	switch {
	case ip[0]>>13 != 1,
		ip[0] == 0x2001 && ip[1] < 0x200,
		ip[0] == 0x2001 && ip[1] == 0xDB8,
		ip[0] == 0x2002,
		ip[0] == 0x3FFF && ip[1] < 0x1000:
		return false
	}
	return true
}
