package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// The long conversations: all are in progress from the beginning of the last one to the end of the first one.
const (
	longConversations = 2000
	longTokens        = 130_000 // of each prompt
	longAnswer        = 64      // tokens
	longTurns         = 3
	longEvery         = 40 * time.Millisecond // between two starts
	longThink         = 90 * time.Second
)

// longTable measures the memory and the CPU time of long conversations, whose texts are made of a trace.
func longTable(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "kvbooth-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "long.jsonl")
	if err := writeLongTrace(file); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	server, address, err := startServer(ctx, self, false)
	if err != nil {
		return err
	}
	defer stopChild(server)
	loadgen, err := filepath.Abs("bin/loadgen")
	if err != nil {
		return err
	}
	client, control, err := startLoadgen(ctx, loadgen, address, dir, longConversations, "--trace="+file,
		"--rate="+strconv.FormatFloat(1/longEvery.Seconds(), 'f', 1, 64)+"/s", "--max-inflight=10000")
	if err != nil {
		return err
	}
	defer stopChild(client)
	most, turns := 0, int64(0)
	for client.ProcessState == nil {
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		s, err := control.Snapshot(ctx)
		if err != nil && most == 0 {
			continue // it reads the trace
		}
		if err != nil {
			return err
		}
		lane := s.Lanes[0]
		most, turns = max(most, lane.State.Concurrency.Actual), lane.Totals.OK
		if turns+lane.Totals.Errors >= longConversations*longTurns/2 {
			break // the last one has begun
		}
	}
	cpu, memory, err := usage(client.Process.Pid)
	if err != nil {
		return err
	}
	fmt.Printf("%d conversations in progress with prompts of %d tokens: %d turns, %.1f MB at most, %.1f ms of CPU a "+
		"turn\n",
		most, longTokens, turns, float64(memory)/1e6, 1000*cpu.Seconds()/float64(max(turns, 1)))
	return nil
}

// longLine is a line in Mooncake's form.
type longLine struct {
	Timestamp *int64 `json:"timestamp,omitempty"`
	Session   string `json:"session_id"`
	Delay     int64  `json:"delay,omitempty"`
	Input     int    `json:"input_length"`
	Output    int    `json:"output_length"`
	Hashes    []int  `json:"hash_ids"`
	Whole     bool   `json:"whole"`
}

// writeLongTrace writes sessions without a common prefix, each of whose turns extends the prompt before it by a block.
func writeLongTrace(file string) error {
	const blockTokens = 512
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriter(f)
	lines := json.NewEncoder(out)
	for session := range longConversations {
		hashes := make([]int, longTokens/blockTokens-longTurns)
		for i := range hashes {
			hashes[i] = session<<20 + i
		}
		for turn := range longTurns {
			hashes = append(hashes, session<<20+len(hashes))
			l := longLine{
				Session: strconv.Itoa(session), Input: len(hashes) * blockTokens, Output: longAnswer, Hashes: hashes, Whole: true,
			}
			if turn == 0 {
				l.Timestamp = new((time.Duration(session) * longEvery).Milliseconds())
			} else {
				l.Delay = longThink.Milliseconds()
			}
			if err := lines.Encode(l); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}
