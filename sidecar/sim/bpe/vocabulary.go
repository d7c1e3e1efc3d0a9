// Package bpe is the byte-level BPE of cl100k_base, a common vocabulary of about the size of today's models'. The
// vocabulary is embedded compressed and decompressed when it is first needed.
package bpe

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"hash/maphash"
	"io"
	"sync"
)

// Tokens is the number of tokens, with ids from 0. The special tokens of cl100k_base have greater ids and are not among
// them.
const Tokens = 100_256

// packed holds the length of each token in a byte, in the order of the ids, and then their bytes, compressed. A test
// writes it from the tokenizer library.
//
//go:embed cl100k.gz
var packed []byte

// vocabulary finds the ids of tokens in an open hash table. It takes 2 MB without a pointer, a third of a map's memory,
// and costs the garbage collector nothing.
type vocabulary struct {
	text  string        // the tokens' bytes, in the order of the ids
	ends  [Tokens]int32 // offset of each token's end in text
	slots [slots]int32  // ids plus 1 by hash, 0 for none
	seed  maphash.Seed
}

// slots is a power of 2.
const slots = 1 << 18

var loaded = sync.OnceValue(func() *vocabulary {
	v := &vocabulary{seed: maphash.MakeSeed()}
	in, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err) // the vocabulary is part of the program
	}
	lengths := make([]byte, Tokens)
	if _, err := io.ReadFull(in, lengths); err != nil {
		panic(err)
	}
	total := int32(0)
	for id, n := range lengths {
		total += int32(n)
		v.ends[id] = total
	}
	text := make([]byte, total)
	if _, err := io.ReadFull(in, text); err != nil {
		panic(err)
	}
	v.text = string(text)
	for id := range uint32(Tokens) {
		v.slots[v.slot(v.token(id))] = int32(id) + 1
	}
	return v
})

// token returns the bytes of a token.
func (v *vocabulary) token(id uint32) string {
	begin := int32(0)
	if id > 0 {
		begin = v.ends[id-1]
	}
	return v.text[begin:v.ends[id]]
}

// id returns the id of a token; ok is false if the text is none.
func (v *vocabulary) id(text string) (id uint32, ok bool) {
	found := v.slots[v.slot(text)]
	return uint32(found - 1), found > 0
}

// slot returns the index of a token's slot, or of the free one where it would be.
func (v *vocabulary) slot(text string) uint64 {
	i := maphash.String(v.seed, text) % slots
	for v.slots[i] != 0 && v.token(uint32(v.slots[i]-1)) != text {
		i = (i + 1) % slots
	}
	return i
}
