// Package events publishes the changes of a simulated worker's cache as vLLM publishes those of its KV cache: events in
// MessagePack over two sockets of ZeroMQ, one that publishes and one that replays.
//
//	publish  [topic, number as 8 bytes, [seconds, [event], rank]]
//	replay   ["", number as 8 bytes] is answered by ["", topic, number, batch] for each batch from that number on
//	         that is kept, and ["", "", -1, ""] at the end
//
// The implementation of ZeroMQ is the package's own. It needs 150 lines, because publishing takes little of the
// protocol. The library in pure Go, go-zeromq/zmq4, has had no change since June 2024, and one peer that does not read
// blocks its sockets for all others.
package events

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/sim"
)

const (
	queued       = 1000     // messages that a slow subscriber may lag behind; later ones are dropped, as in ZeroMQ
	keptBatches  = 10_000   // vLLM's default
	keptBytes    = 16 << 20 // of the kept batches
	replayWithin = 30 * time.Second
)

// endOfReplay is the number of the message that ends a replay.
const endOfReplay = ^uint64(0)

// Format is the form of the messages.
type Format struct {
	Arrays   bool // events are arrays, as before vLLM 0.24; otherwise they are maps
	PodTopic bool // the topic is kv@host:port@model, as in llm-d; otherwise it is empty
}

// Source says where a worker publishes, as vLLM's /kv_event_sources does.
type Source struct {
	Rank     int    `json:"data_parallel_rank"`
	Endpoint string `json:"endpoint"`        // tcp://host:port
	Replay   string `json:"replay_endpoint"` // tcp://host:port
	Topic    string `json:"topic"`
}

// Publisher publishes the events of one worker. It is safe for concurrent use.
type Publisher struct {
	arrays      bool
	blockTokens int

	mu          sync.Mutex
	source      Source
	next        uint64 // number of the next batch
	kept        []numbered
	keptSize    int
	subscribers map[*subscriber]struct{}
}

// numbered is a published batch.
type numbered struct {
	number uint64
	batch  []byte
}

// subscriber is a peer of the socket that publishes.
type subscriber struct {
	topics map[string]int // prefixes, with the number of their subscriptions
	queue  chan []byte    // messages
}

// NewPublisher returns a publisher for blocks of the given size.
func NewPublisher(f Format, blockTokens int) *Publisher {
	return &Publisher{arrays: f.Arrays, blockTokens: blockTokens, subscribers: map[*subscriber]struct{}{}}
}

// Locate sets where the worker publishes, and its topic. It must be called before the first event.
func (p *Publisher) Locate(s Source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.source = s
}

// Source returns the value of the last call of Locate.
func (p *Publisher) Source() Source {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.source
}

// Stored publishes that the cache holds the blocks of a request from first up to end, without end. It does not block.
func (p *Publisher) Stored(r *sim.Request, first, end int) {
	p.publish(stored(r, first, end, p.blockTokens))
}

// Removed publishes that the cache has evicted blocks. It does not block.
func (p *Publisher) Removed(blocks []sim.BlockHash) { p.publish(removed(blocks)) }

// Cleared publishes that the cache is empty. It does not block.
func (p *Publisher) Cleared() { p.publish(cleared()) }

func (p *Publisher) publish(event []member) {
	seconds := float64(time.Now().UnixNano()) / float64(time.Second)
	b := batch(seconds, event, p.arrays)
	p.mu.Lock()
	defer p.mu.Unlock()
	message := appendMessage(nil, []byte(p.source.Topic), eightBytes(p.next), b)
	for s := range p.subscribers {
		if s.wants(p.source.Topic) {
			select {
			case s.queue <- message:
			default: // the subscriber is too slow, and sees a gap in the numbers
			}
		}
	}
	p.kept = append(p.kept, numbered{p.next, b})
	p.next++
	p.keptSize += len(b)
	for len(p.kept) > keptBatches || p.keptSize > keptBytes {
		p.keptSize -= len(p.kept[0].batch)
		p.kept = p.kept[1:]
	}
}

func (s *subscriber) wants(topic string) bool {
	for prefix := range s.topics {
		if strings.HasPrefix(topic, prefix) {
			return true
		}
	}
	return false
}

func eightBytes(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

// Serve publishes to the subscribers that connect to a listener, until ctx ends. It closes the listener.
func (p *Publisher) Serve(ctx context.Context, l net.Listener) error {
	return accept(ctx, l, "PUB", p.subscribe)
}

// ServeReplay answers requests for earlier batches, until ctx ends. It closes the listener.
func (p *Publisher) ServeReplay(ctx context.Context, l net.Listener) error {
	return accept(ctx, l, "ROUTER", p.replay)
}

// accept serves each peer in a goroutine. It returns when all of them have ended.
func accept(ctx context.Context, l net.Listener, kind string, serve func(net.Conn, *bufio.Reader)) error {
	var peers sync.WaitGroup
	defer peers.Wait()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		peers.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			r := bufio.NewReader(conn)
			if handshake(conn, r, kind) == nil {
				serve(conn, r)
			}
		})
	}
}

// subscribe sends a subscriber what it subscribes to, until it disconnects.
func (p *Publisher) subscribe(conn net.Conn, r *bufio.Reader) {
	s := &subscriber{topics: map[string]int{}, queue: make(chan []byte, queued)}
	p.mu.Lock()
	p.subscribers[s] = struct{}{}
	p.mu.Unlock()
	var writer sync.WaitGroup
	writer.Go(func() {
		for message := range s.queue {
			if _, err := conn.Write(message); err != nil {
				conn.Close() // ends the loop below
				return
			}
		}
	})
	for {
		frames, err := readMessage(r)
		if err != nil {
			break
		}
		if len(frames) == 1 && len(frames[0]) > 0 {
			p.choose(s, frames[0][0] == 1, string(frames[0][1:]))
		}
	}
	p.mu.Lock()
	delete(p.subscribers, s)
	p.mu.Unlock()
	close(s.queue) // nothing sends any more
	conn.Close()   // ends a write to a peer that does not read
	writer.Wait()
}

// choose adds or removes one subscription.
func (p *Publisher) choose(s *subscriber, wanted bool, topic string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wanted {
		s.topics[topic]++
	} else if s.topics[topic]--; s.topics[topic] <= 0 {
		delete(s.topics, topic)
	}
}

// replay answers the requests of a peer, until it disconnects.
func (p *Publisher) replay(conn net.Conn, r *bufio.Reader) {
	for {
		frames, err := readMessage(r)
		if err != nil {
			return
		}
		if len(frames) != 2 || len(frames[0]) > 0 || len(frames[1]) != 8 {
			continue // vLLM ignores such a request, too
		}
		from := binary.BigEndian.Uint64(frames[1])
		p.mu.Lock()
		topic, kept := []byte(p.source.Topic), p.kept
		p.mu.Unlock()
		var answer bytes.Buffer
		for _, n := range kept {
			if n.number >= from {
				answer.Write(appendMessage(nil, nil, topic, eightBytes(n.number), n.batch))
			}
		}
		answer.Write(appendMessage(nil, nil, nil, eightBytes(endOfReplay), nil))
		if conn.SetWriteDeadline(time.Now().Add(replayWithin)) != nil {
			return
		}
		if _, err := conn.Write(answer.Bytes()); err != nil {
			return
		}
	}
}
