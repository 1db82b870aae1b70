package egress_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"ezat.io/chat-completions/e2e/envoy"
	"ezat.io/chat-completions/translate"
)

// shippedRanges are the ranges of the shipped file's address filter.
func shippedRanges(t *testing.T) []netip.Prefix {
	t.Helper()
	root, err := envoy.Root()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(root, envoy.File))
	if err != nil {
		t.Fatal(err)
	}
	c, err := envoy.ParseConfig(source)
	if err != nil {
		t.Fatal(err)
	}
	var ranges []netip.Prefix
	collect := func(c *envoy.Config, place []any) error {
		ranges = nil // each of the three places has the same
		return editRanges(c, place, func(prefix string, bits any) []any {
			p, err := netip.ParsePrefix(fmt.Sprintf("%s/%v", prefix, bits))
			if err != nil || p != p.Masked() {
				t.Errorf("%s/%v is no range: %v", prefix, bits, err)
			}
			ranges = append(ranges, p)
			return []any{cidr(prefix, bits)}
		})
	}
	if err := envoy.ImageDNS(collect)(c); err != nil {
		t.Fatal(err)
	}
	if len(ranges) == 0 {
		t.Fatal("the file filters nothing")
	}
	return ranges
}

// TestWallsAgree holds the egress's list of addresses against the filter's own: each
// is a wall by itself, so both must know the same addresses as private.
func TestWallsAgree(t *testing.T) {
	ranges := shippedRanges(t)
	agree := func(ip netip.Addr) {
		egress := false
		for _, r := range ranges {
			egress = egress || r.Contains(ip)
		}
		host := ip.String()
		if ip.Is6() {
			host = "[" + host + "]"
		}
		_, fault := translate.ParseImageURL("http://"+host+"/", false)
		if own := fault == notPublic; own != egress || fault != "" && !own {
			t.Errorf("%v: the egress denies it: %v; the filter says %q", ip, egress, fault)
		}
	}
	for _, r := range ranges {
		first, last := r.Addr(), lastOf(r)
		for _, ip := range []netip.Addr{first, last, first.Prev(), last.Next(), first.Next(), last.Prev()} {
			if ip.IsValid() {
				agree(ip)
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		var v4 [4]byte
		var v6 [16]byte
		for i := range v6 {
			v6[i] = byte(random.Uint32())
		}
		copy(v4[:], v6[:])
		agree(netip.AddrFrom4(v4))
		v6[0] = v6[0]&0x1F | 0x20 // in 2000::/3, where both lists have holes
		if random.IntN(2) == 0 {
			v6[0], v6[1] = 0x20, v6[1]&3
		}
		agree(netip.AddrFrom16(v6))
	}
}

// lastOf is the last address of a range.
func lastOf(r netip.Prefix) netip.Addr {
	bytes := r.Addr().AsSlice()
	for bit := r.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	ip, _ := netip.AddrFromSlice(bytes)
	return ip
}

// TestPrivateAddressesAreDenied holds the shipped list against addresses that must be
// in it, and public ones that must not.
func TestPrivateAddressesAreDenied(t *testing.T) {
	ranges := shippedRanges(t)
	for denied, addresses := range map[bool][]string{
		true: {
			"0.0.0.0", "10.1.2.3", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.255", "168.63.129.16", "169.254.169.254", "169.254.170.2",
			"172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.251",
			"239.255.255.250", "240.0.0.1", "255.255.255.255",
			"::", "::1", "::ffff:8.8.8.8", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1",
			"2001::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1",
		},
		false: {
			"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "168.63.129.15", "168.63.129.17",
			"172.15.255.255", "172.32.0.0", "192.0.1.1", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
			"2000::1", "2001:200::1", "2001:4860:4860::8888", "2003::1", "2606:4700::1111", "3ffe::1",
		},
	} {
		for _, text := range addresses {
			ip := netip.MustParseAddr(text)
			found := false
			for _, r := range ranges {
				// A mapped address is one of IPv6 here, as it is in an AAAA record.
				found = found || r.Contains(ip)
			}
			if found != denied {
				t.Errorf("%s is denied: %v", text, found)
			}
		}
	}
}
