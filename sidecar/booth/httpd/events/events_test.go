package events

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/inmem"
	"kvbooth/sidecar/sim"
)

// peer is a socket of ZeroMQ at the other end. It writes the bytes that libzmq 4.3 writes.
type peer struct {
	t    *testing.T
	conn net.Conn
}

// greeting is libzmq's greeting of version 3.1 with the mechanism NULL.
const greeting = "ff00000000000000017f0301" + "4e554c4c00000000000000000000000000000000" +
	"00" + "00000000000000000000000000000000000000000000000000000000000000"

// connect opens a connection as a socket of the given type, and checks what the publisher's socket sends before its
// first message.
func connect(t *testing.T, l *inmem.Listener, kind, publishers string) *peer {
	t.Helper()
	conn, err := l.Dial(t.Context(), "", "")
	require.NoError(t, err)
	p := &peer{t, conn}
	t.Cleanup(func() { conn.Close() })
	p.reads("ff00000000000000017f0300" + greeting[24:])
	p.writes(greeting)
	body := append([]byte("\x05READY\x0bSocket-Type\x00\x00\x00"), byte(len(kind)))
	body = append(body, kind...)
	ready := "\x05READY\x0bSocket-Type\x00\x00\x00" + string(rune(len(publishers))) + publishers +
		"\x08Identity\x00\x00\x00\x00"
	p.reads("04" + hex.EncodeToString([]byte{byte(len(ready))}) + hex.EncodeToString([]byte(ready)))
	p.writes("04" + hex.EncodeToString([]byte{byte(len(body))}) + hex.EncodeToString(body))
	return p
}

func (p *peer) writes(bytes string) {
	p.t.Helper()
	data, err := hex.DecodeString(bytes)
	require.NoError(p.t, err)
	_, err = p.conn.Write(data)
	require.NoError(p.t, err)
}

func (p *peer) reads(bytes string) {
	p.t.Helper()
	data := make([]byte, len(bytes)/2)
	_, err := io.ReadFull(p.conn, data)
	require.NoError(p.t, err)
	require.Equal(p.t, bytes, hex.EncodeToString(data))
}

// message reads the frames of a message.
func (p *peer) message() (frames [][]byte) {
	p.t.Helper()
	for more := true; more; {
		head := make([]byte, 2)
		_, err := io.ReadFull(p.conn, head)
		require.NoError(p.t, err)
		size := uint64(head[1])
		if head[0]&2 != 0 {
			rest := make([]byte, 7)
			_, err := io.ReadFull(p.conn, rest)
			require.NoError(p.t, err)
			size = binary.BigEndian.Uint64(append(head[1:], rest...))
		}
		body := make([]byte, size)
		_, err = io.ReadFull(p.conn, body)
		require.NoError(p.t, err)
		frames, more = append(frames, body), head[0]&1 != 0
	}
	return frames
}

// decode reads a value in MessagePack, of the types that events have.
func decode(t *testing.T, from []byte) (value any, rest []byte) {
	t.Helper()
	b := from[0]
	number := func(size int) uint64 {
		return binary.BigEndian.Uint64(append(make([]byte, 8-size), from[1:1+size]...))
	}
	list := func(n int, rest []byte) (any, []byte) {
		all := []any{}
		for range n {
			value, rest = decode(t, rest)
			all = append(all, value)
		}
		return all, rest
	}
	switch {
	case b < 0x80:
		return uint64(b), from[1:]
	case b < 0x90:
		all := map[string]any{}
		rest = from[1:]
		for range b & 15 {
			name, after := decode(t, rest)
			all[name.(string)], rest = decode(t, after)
		}
		return all, rest
	case b < 0xa0:
		return list(int(b&15), from[1:])
	case b < 0xc0:
		n := 1 + int(b&31)
		return string(from[1:n]), from[n:]
	case b == 0xc0:
		return nil, from[1:]
	case b == 0xcb:
		return math.Float64frombits(number(8)), from[9:]
	case b == 0xcd, b == 0xce, b == 0xcf:
		size := 1 << (b - 0xcc)
		return number(size), from[1+size:]
	case b == 0xdd:
		return list(int(number(4)), from[5:])
	}
	t.Fatalf("unexpected byte %#x", b)
	return nil, nil
}

// request has two blocks of two tokens.
var request = &sim.Request{Blocks: []sim.BlockHash{7, 1 << 63}, Tokens: []uint32{1, 100_264, 300, 4}}

// open starts both sockets of a publisher.
func open(t *testing.T, f Format, topic string) (p *Publisher, published, replay *inmem.Listener) {
	ctx, cancel := context.WithCancel(t.Context())
	p, published, replay = NewPublisher(f, 2), inmem.Listen(), inmem.Listen()
	p.Locate(Source{Topic: topic})
	ended := make(chan error, 2)
	go func() { ended <- p.Serve(ctx, published) }()
	go func() { ended <- p.ServeReplay(ctx, replay) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
	})
	return p, published, replay
}

// A subscriber receives [topic, number, batch] for the prefixes of the topic that it subscribes to.
func TestSubscriberReceivesEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, published, _ := open(t, Format{}, "kv@127.0.0.1:8000@m")
		s := connect(t, published, "SUB", "PUB")
		other := connect(t, published, "SUB", "PUB")
		s.writes("0004016b7640")   // subscribes to kv@
		other.writes("0003017878") // to xx
		other.writes("000101")     // and to everything
		other.writes("000100")     // and no longer
		synctest.Wait()
		p.Stored(request, 0, 1)
		p.Stored(request, 1, 2)
		p.Removed(request.Blocks[1:])
		p.Cleared()
		block := func(hash, parent any, tokens ...any) map[string]any {
			return map[string]any{
				"type": "BlockStored", "block_hashes": []any{hash}, "parent_block_hash": parent, "token_ids": tokens,
				"block_size": uint64(2), "lora_id": nil, "medium": "GPU", "lora_name": nil, "group_idx": uint64(0),
				"kv_cache_spec_kind": "full_attention",
			}
		}
		for i, want := range []map[string]any{
			block(uint64(7), nil, uint64(1), uint64(100_264)),
			block(uint64(1<<63), uint64(7), uint64(300), uint64(4)),
			{"type": "BlockRemoved", "block_hashes": []any{uint64(1 << 63)}, "medium": "GPU", "group_idx": uint64(0)},
			{"type": "AllBlocksCleared"},
		} {
			frames := s.message()
			require.Len(t, frames, 3)
			assert.Equal(t, "kv@127.0.0.1:8000@m", string(frames[0]))
			assert.Equal(t, eightBytes(uint64(i)), frames[1])
			got, rest := decode(t, frames[2])
			require.Empty(t, rest)
			batch := got.([]any)
			require.Len(t, batch, 3)
			assert.Equal(t, 946684800., batch[0], "the beginning of the bubble's time")
			assert.Equal(t, []any{want}, batch[1])
			assert.Equal(t, uint64(0), batch[2])
		}
		other.writes("000101")
		synctest.Wait()
		p.Cleared()
		assert.Equal(t, eightBytes(4), other.message()[1], "nothing while nothing matched")
	})
}

func TestEventsAsArrays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, published, _ := open(t, Format{Arrays: true}, "")
		s := connect(t, published, "SUB", "PUB")
		s.writes("000101")
		synctest.Wait()
		p.Stored(request, 0, 2)
		p.Cleared()
		got, _ := decode(t, s.message()[2])
		assert.Equal(t, []any{[]any{
			"BlockStored",
			[]any{uint64(7), uint64(1 << 63)},
			nil,
			[]any{uint64(1), uint64(100_264), uint64(300), uint64(4)},
			uint64(2), nil, "GPU", nil,
		}}, got.([]any)[1])
		got, _ = decode(t, s.message()[2])
		assert.Equal(t, []any{[]any{"AllBlocksCleared"}}, got.([]any)[1])
	})
}

// A replay begins at the requested number and ends with the number -1.
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, replay := open(t, Format{}, "t")
		for range 4 {
			p.Cleared()
		}
		d := connect(t, replay, "DEALER", "ROUTER")
		d.writes("0100" + "0003010203")                // ignored: no number
		d.writes("0100" + "0008" + "0000000000000002") // from 2 on
		for _, number := range []uint64{2, 3} {
			frames := d.message()
			require.Len(t, frames, 4)
			assert.Empty(t, frames[0])
			assert.Equal(t, "t", string(frames[1]))
			assert.Equal(t, eightBytes(number), frames[2])
			assert.NotEmpty(t, frames[3])
		}
		assert.Equal(t, [][]byte{{}, {}, {255, 255, 255, 255, 255, 255, 255, 255}, {}}, d.message())
	})
}

func TestSlowSubscriberDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, published, _ := open(t, Format{}, "")
		s := connect(t, published, "SUB", "PUB")
		s.writes("000101")
		synctest.Wait()
		p.Cleared()
		synctest.Wait() // the message is in a write that blocks
		for range queued + 10 {
			p.Cleared()
		}
		for i := range queued + 1 {
			require.Equal(t, eightBytes(uint64(i)), s.message()[1])
		}
		p.Cleared()
		assert.Equal(t, eightBytes(queued+11), s.message()[1], "a gap in the numbers")
	})
}

func TestOtherProtocolIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, published, _ := open(t, Format{}, "")
		for _, first := range []string{
			"474554202f20485454502f312e310d0a" + greeting[32:],                         // GET / HTTP/1.1
			greeting[:24] + "504c41494e000000000000000000000000000000" + greeting[64:], // mechanism PLAIN
		} {
			conn, err := published.Dial(t.Context(), "", "")
			require.NoError(t, err)
			p := &peer{t, conn}
			p.reads("ff00000000000000017f0300" + greeting[24:])
			p.writes(first)
			_, err = conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
		}
	})
}
