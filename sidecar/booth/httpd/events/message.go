package events

import (
	"encoding/binary"
	"fmt"
	"math"

	"kvbooth/sidecar/sim"
)

// member is a member of an event, in vLLM's order.
type member struct {
	name  string
	value any
	named bool // only in events that are maps
}

// medium is the medium of all blocks: they are never offloaded.
const medium = "GPU"

// group is the number of the cache in a model with several kinds of attention. Events that are lists do not have it.
var group = member{"group_idx", 0, true}

func stored(r *sim.Request, first, end, blockTokens int) []member {
	var parent any
	if first > 0 {
		parent = r.Blocks[first-1]
	}
	return []member{
		{"type", "BlockStored", false},
		{"block_hashes", r.Blocks[first:end], false},
		{"parent_block_hash", parent, false},
		{"token_ids", r.Tokens[first*blockTokens : end*blockTokens], false},
		{"block_size", blockTokens, false},
		{"lora_id", nil, false},
		{"medium", medium, false},
		{"lora_name", nil, false},
		group,
		{"kv_cache_spec_kind", "full_attention", true},
	}
}

func removed(blocks []sim.BlockHash) []member {
	return []member{{"type", "BlockRemoved", false}, {"block_hashes", blocks, false}, {"medium", medium, false}, group}
}

func cleared() []member { return []member{{"type", "AllBlocksCleared", false}} }

// batch returns a batch of one event in MessagePack: [seconds, [event], rank].
func batch(seconds float64, event []member, arrays bool) []byte {
	to := append(appendValue([]byte{0x93}, seconds), 0x91)
	if arrays {
		n := 0
		for n < len(event) && !event[n].named {
			n++
		}
		event = event[:n]
		to = append(to, 0x90|byte(n))
	} else {
		to = append(to, 0x80|byte(len(event)))
	}
	for _, m := range event {
		if !arrays {
			to = appendValue(to, m.name)
		}
		to = appendValue(to, m.value)
	}
	return appendValue(to, 0)
}

// appendValue appends a value in MessagePack (github.com/msgpack/msgpack/blob/master/spec.md).
func appendValue(to []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(to, 0xc0)
	case string: // of less than 32 bytes
		return append(append(to, 0xa0|byte(len(v))), v...)
	case float64:
		return binary.BigEndian.AppendUint64(append(to, 0xcb), math.Float64bits(v))
	case int:
		return appendUint(to, uint64(v))
	case sim.BlockHash:
		return appendUint(to, uint64(v))
	case []sim.BlockHash:
		to = binary.BigEndian.AppendUint32(append(to, 0xdd), uint32(len(v)))
		for _, hash := range v {
			to = appendUint(to, uint64(hash))
		}
		return to
	case []uint32:
		to = binary.BigEndian.AppendUint32(append(to, 0xdd), uint32(len(v)))
		for _, id := range v {
			to = appendUint(to, uint64(id))
		}
		return to
	}
	panic(fmt.Sprintf("no event has a %T", value))
}

func appendUint(to []byte, v uint64) []byte {
	switch {
	case v < 1<<7:
		return append(to, byte(v))
	case v < 1<<16:
		return binary.BigEndian.AppendUint16(append(to, 0xcd), uint16(v))
	case v < 1<<32:
		return binary.BigEndian.AppendUint32(append(to, 0xce), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(to, 0xcf), v)
}
