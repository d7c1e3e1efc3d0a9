package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/trace"
)

// recordTraffic writes the ended turns of a run of a load generator as a trace. The error is a notStarted where there
// is nothing to record.
func recordTraffic(ctx context.Context, conf *config.Config, stderr io.Writer) error {
	client, err := api.NewClient(&http.Client{Timeout: recordTimeout}, conf.Record.From, string(conf.Token))
	if err != nil {
		return notStarted{err}
	}
	r := &trafficRecorder{client: client, openings: map[string]trace.Piece{}}
	if err := r.read(ctx, conf.Record.Run); err != nil {
		return notStarted{api.Refuse("from", conf.Record.From, fmt.Sprintf("a load generator whose turns can be read, "+
			"with its token in LOADGEN_TOKEN if it has one; %v", err))}
	}
	if len(r.conversations) == 0 {
		return notStarted{api.Refuse("from", conf.Record.From, "a load generator with ended turns of the run")}
	}
	f, err := os.OpenFile(conf.Output[0], os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return notStarted{api.Refuse("output", conf.Output[0],
			fmt.Sprintf("a file that can be made and does not exist yet; %v", err))}
	}
	buffered := bufio.NewWriter(f)
	turns, err := r.write(buffered, conf.Traffic.TraceBlockTokens)
	if err = errors.Join(err, buffered.Flush(), f.Close()); err == nil {
		fmt.Fprintf(stderr, "wrote %d turns of %d conversations; replay them with --trace %s\n", turns,
			len(r.conversations), conf.Output[0])
	}
	return err
}

// trafficRecorder reads the traffic of a run.
type trafficRecorder struct {
	client        *api.Client
	conversations []api.Conversation // in the order of their starts
	openings      map[string]trace.Piece
}

// read reads the conversations of a run; "" is the latest.
func (r *trafficRecorder) read(ctx context.Context, run string) error {
	q := api.ConversationQuery{Limit: 200}
	for {
		page, err := r.client.Conversations(ctx, q)
		if err != nil {
			return err
		}
		for _, c := range page.Conversations {
			parts := strings.Split(c.ID, "-")
			if run == "" {
				run = parts[len(parts)-2] // conversations come in the order of their starts, the latest first
			}
			if parts[len(parts)-2] != run || c.TurnsDone == 0 {
				continue
			}
			if c, err = r.client.Conversation(ctx, c.ID); err != nil {
				return err
			}
			r.conversations = append(r.conversations, c)
			if err := r.readOpening(ctx, c.Starter); err != nil {
				return err
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			slices.Reverse(r.conversations)
			return nil
		}
	}
}

// readOpening reads the text of an opening once.
func (r *trafficRecorder) readOpening(ctx context.Context, id string) error {
	if _, known := r.openings[id]; known || id == "" {
		return nil
	}
	s, err := r.client.Starter(ctx, "", id)
	if errors.Is(err, api.ErrNotFound) {
		return fmt.Errorf("%w; the traffic can only be recorded with the corpus that it had", err)
	}
	r.openings[id] = textPiece(s.Text)
	return err
}

// textPiece stands for a text.
func textPiece(text string) trace.Piece {
	h := fnv.New64a()
	_, _ = io.WriteString(h, text) // never fails
	return trace.Piece{ID: h.Sum64(), Tokens: corpus.Tokens(text)}
}

// write writes the turns that ended well, up to the first one of a conversation that did not. With 0, the size of
// blocks is that of most segments, or 16 for texts.
func (r *trafficRecorder) write(to io.Writer, blockTokens int) (turns int, err error) {
	prompts := make([][][]trace.Piece, len(r.conversations))
	sizes := map[int]int{}
	for i := range r.conversations {
		prompts[i] = r.prompts(&r.conversations[i])
		for _, prompt := range prompts[i][:min(1, len(prompts[i]))] {
			for _, p := range prompt {
				sizes[p.Tokens]++
			}
		}
	}
	if blockTokens == 0 {
		blockTokens = usualSize(sizes)
	}
	w := trace.NewWriter(to, blockTokens)
	for i, c := range r.conversations {
		for n, prompt := range prompts[i] {
			at := c.Turns[n].Started.Sub(r.conversations[0].Turns[0].Started)
			if n > 0 {
				at = max(0, c.Turns[n].Started.Sub(c.Turns[n-1].Ended))
			}
			if err := w.Write(c.ID, n == 0, max(0, at), prompt, *c.Turns[n].OutputTokens); err != nil {
				return turns, err
			}
			turns++
		}
	}
	return turns, nil
}

// usualSize returns the size of most pieces, as those of a trace's blocks have one; otherwise that of blocks of texts.
func usualSize(sizes map[int]int) int {
	all := 0
	for _, n := range sizes {
		all += n
	}
	for size, n := range sizes {
		if 2*n > all && size >= trace.TextBlockTokens {
			return size
		}
	}
	return trace.TextBlockTokens
}

// prompts returns the prompts of a conversation's turns that ended well, up to the first one that did not.
func (r *trafficRecorder) prompts(c *api.Conversation) (all [][]trace.Piece) {
	var prompt []trace.Piece
	kept := 0 // pieces of the latest prompt without what follows it
	for n := range c.Turns {
		t := &c.Turns[n]
		if t.Status != api.TurnOK || t.OutputTokens == nil {
			break
		}
		made, keep, whole := workload.ParseNotation(t.UserMessage)
		if opening, ok := r.openings[c.Starter]; ok {
			if n == 0 {
				prompt = append(prompt, opening)
			}
			prompt = append(prompt, textPiece(t.UserMessage))
		} else if !whole && made == nil {
			prompt = append(prompt, textPiece(t.UserMessage))
		} else {
			if whole {
				prompt = slices.Clone(prompt[:min(keep, kept)])
			}
			for _, s := range made {
				prompt = append(prompt, trace.Piece(s))
			}
		}
		prompt = slices.Clip(prompt)
		kept = len(prompt)
		all = append(all, prompt)
		answer := textPiece(fmt.Sprint(t.Conversation, t.Number, t.AssistantMessage))
		answer.Tokens = *t.OutputTokens
		prompt = append(prompt, answer)
	}
	return all
}
