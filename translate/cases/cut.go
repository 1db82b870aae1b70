package cases

import (
	"bytes"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Cutting is a way in which a body may arrive.
type Cutting string

// The ways of cutting.
const (
	Whole  Cutting = "whole"  // in one piece
	Events Cutting = "events" // one event of the stream after the other
	Bytes  Cutting = "bytes"  // byte by byte
	Random Cutting = "random" // pieces of seeded random lengths, several times
)

var allCuts = []Cutting{Whole, Events, Bytes, Random}

const randomCuts = 6

// Delivery is one way in which a body arrives: piece after piece. EndAlone says that
// the end of the body comes by itself after the last piece, not with it.
type Delivery struct {
	Name     string
	Pieces   [][]byte
	EndAlone bool
}

// Deliveries lists the ways in which the case's answer body is to be delivered. They
// are the same in every run.
func (c *Case) Deliveries(body []byte) []Delivery {
	cuts := c.Cuts
	if cuts == nil {
		cuts = allCuts
	}
	var all []Delivery
	for _, cut := range cuts {
		switch cut {
		case Whole:
			all = append(all,
				Delivery{Name: "whole", Pieces: [][]byte{body}},
				Delivery{Name: "whole, end alone", Pieces: [][]byte{body}, EndAlone: true})
		case Events:
			all = append(all, Delivery{Name: "event by event", Pieces: splitEvents(body)})
		case Bytes:
			all = append(all, Delivery{Name: "byte by byte", Pieces: slices.Collect(slices.Chunk(body, 1)), EndAlone: true})
		case Random:
			for seed := range uint64(randomCuts) {
				all = append(all, Delivery{
					Name:     "random cuts " + strconv.FormatUint(seed, 10),
					Pieces:   c.Pieces(body, seed),
					EndAlone: seed%2 == 1,
				})
			}
		}
	}
	return all
}

func splitEvents(body []byte) [][]byte {
	var pieces [][]byte
	for len(body) > 0 {
		n := len(body)
		if i := bytes.Index(body, []byte("\n\n")); i >= 0 {
			n = i + 2
		}
		pieces = append(pieces, body[:n])
		body = body[n:]
	}
	return pieces
}

// Pieces cuts a body at places that the case's name and the seed decide. Small seeds
// give small pieces.
func (c *Case) Pieces(body []byte, seed uint64) [][]byte {
	h := fnv.New64a()
	h.Write([]byte(c.Name))
	rnd := rand.New(rand.NewPCG(h.Sum64(), seed))
	longest := 8 << seed
	var pieces [][]byte
	for len(body) > 0 {
		n := min(1+rnd.IntN(longest), len(body))
		pieces = append(pieces, body[:n])
		body = body[n:]
	}
	return pieces
}
