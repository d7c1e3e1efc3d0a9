package doctor

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/api"
)

const (
	probeTokens   = 4  // per answer
	probeText     = 40 // sentences in front of each question: about 25 blocks of 32 tokens
	probeRepeats  = 5  // maximum, because events arrive with a delay
	probeInterval = 300 * time.Millisecond
	probeTimeout  = 6 * time.Second // timeout of a request to an idle server
)

// probeSentence is repeated in the prompt of the probe.
const probeSentence = "The booth asks this server the same long question twice before the event begins, " +
	"and counts what it remembers. "

// routedByKV is the frontend's counter of requests that it routed by the content of the caches. The counter of applied
// events is not usable: without events, it counts those that the frontend makes itself.
const routedByKV = "dynamo_component_router_kv_hit_rate_count"

// probed is the result of a few requests with the same beginning.
type probed struct {
	requests     int
	text         int         // chunks with a text
	predicted    *float64    // best prediction for a repeat, 0 to 1; nil without a prediction
	cached       int         // largest number of cached tokens in a repeat's prompt
	routed       *float64    // growth of the router's counter of predictions; nil if there is no counter
	countsCached bool        // an answer had a count of cached tokens
	header       http.Header // header of the last answer
	instance     bool        // an answer had Dynamo's instance id
}

// probe sends a long prompt, and repeats it until the router predicts a hit.
func (e *exam) probe(ctx context.Context, l lane, dynamo bool) (p probed, err error) {
	before, _ := e.routed(ctx, l) // a missing counter starts at 0
	prompt := "Probe " + rand.Text() + ". " + strings.Repeat(probeSentence, probeText)
	for p.requests <= probeRepeats {
		r, err := e.complete(ctx, l, prompt, dynamo)
		if errors.Is(err, errNoExtension) {
			dynamo = false
			r, err = e.complete(ctx, l, prompt, false)
		}
		if err != nil {
			return p, err
		}
		p.requests++
		p.text += r.text
		p.header, p.instance, p.countsCached = r.header, p.instance || r.instance, p.countsCached || r.countsCached
		if p.requests > 1 {
			p.cached = max(p.cached, r.cached)
			if r.predicted != nil && (p.predicted == nil || *r.predicted > *p.predicted) {
				p.predicted = r.predicted
			}
		}
		if p.predicted != nil && *p.predicted > 0 || !dynamo && p.requests > 1 {
			break
		}
		select {
		case <-ctx.Done():
			return p, api.Reason(ctx.Err())
		case <-time.After(probeInterval):
		}
	}
	if after, ok := e.routed(ctx, l); ok {
		p.routed = new(after - before)
	}
	return p, nil
}

// report adds a finding on KV events.
func (p probed) report(all *findings, l lane, dynamo bool) {
	predicts := p.predicted != nil && *p.predicted > 0
	byKV := p.routed != nil && *p.routed > 0
	switch {
	case predicts:
		all.ok(fmt.Sprintf("the router knows the caches: it predicts a hit rate of %.0f %% for a repeated prompt "+
			"(from the workers' KV events, or with --no-router-kv-events from its own routing)", 100**p.predicted))
	case byKV || l.mode == api.ModeKV && p.predicted != nil && p.routed == nil:
		all.problem(fmt.Sprintf("the router receives no KV events: it predicted a hit rate of 0 for %d repeats "+
			"of a prompt, although the engines had %d of its tokens cached", p.requests-1, p.cached), enableEvents)
	case dynamo:
		all.skip(notObserved(l.mode), "switch to kv and try again")
	}
}

// reply is the content of a streamed answer.
type reply struct {
	text         int
	predicted    *float64
	cached       int
	countsCached bool // the answer has a count of cached tokens, even 0
	header       http.Header
	instance     bool // the answer has Dynamo's instance id
}

// errNoExtension means that a server rejects Dynamo's extension.
var errNoExtension = errors.New("it rejects nvext")

func (e *exam) complete(ctx context.Context, l lane, prompt string, dynamo bool) (r reply, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := e.chatRequest(ctx, l, prompt, dynamo)
	if err != nil {
		return r, err
	}
	a, err := ask(e.http, req)
	switch {
	case err != nil:
		return r, err
	case dynamo && (a.code == http.StatusBadRequest || a.code == http.StatusUnprocessableEntity):
		return r, errNoExtension
	case a.code != http.StatusOK:
		return r, errors.New(a.describe())
	case !strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream"):
		return r, errors.New("it does not stream; Content-Type is " + a.header.Get("Content-Type"))
	}
	r, err = readStream(a.body)
	r.header = a.header
	return r, err
}

// chatRequest returns a request for a short streamed answer.
func (e *exam) chatRequest(ctx context.Context, l lane, prompt string, dynamo bool) (*http.Request, error) {
	body := map[string]any{
		"model": l.model, "messages": []map[string]string{{"role": "user", "content": prompt}},
		"max_tokens": probeTokens, "stream": true, "stream_options": map[string]bool{"include_usage": true},
	}
	if dynamo {
		body["nvext"] = map[string]any{"extra_fields": []string{"worker_id", "timing"}}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.at(api.ChatPath), bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key, _ := e.key(l); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return req, nil
}

// chunk is a chunk of a streamed answer.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content   string `json:"content"`
			Reasoning string `json:"reasoning_content"`
		} `json:"delta"`
	} `json:"choices"`
	NVExt struct {
		WorkerID json.RawMessage `json:"worker_id"`
		Timing   struct {
			KVHitRate *float64 `json:"kv_hit_rate"`
		} `json:"timing"`
	} `json:"nvext"`
	Usage struct {
		Details struct {
			Cached *int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Message string          `json:"message"` // Dynamo's errors have it at the top level
}

func readStream(body []byte) (r reply, err error) {
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if data = strings.TrimSpace(data); !ok || data == "[DONE]" {
			continue
		}
		var c chunk
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			return r, errors.New("its stream is invalid")
		}
		if len(c.Error) > 0 && string(c.Error) != "null" {
			return r, fmt.Errorf("its stream ends with an error: %s", c.Error)
		}
		if c.Message != "" && len(c.Choices) == 0 {
			return r, fmt.Errorf("its stream ends with an error: %s", c.Message)
		}
		for _, choice := range c.Choices {
			if choice.Delta.Content != "" || choice.Delta.Reasoning != "" {
				r.text++
			}
		}
		if c.NVExt.Timing.KVHitRate != nil {
			r.predicted = c.NVExt.Timing.KVHitRate
		}
		r.instance = r.instance || len(c.NVExt.WorkerID) > 0
		if n := c.Usage.Details.Cached; n != nil {
			r.cached, r.countsCached = max(r.cached, *n), true
		}
	}
	return r, lines.Err()
}

// routed returns the sum of the counter's series in the frontend's metrics; false if there are none.
func (e *exam) routed(ctx context.Context, l lane) (sum float64, ok bool) {
	a, err := e.get(ctx, l.url+"/metrics", "")
	if err != nil || a.code != http.StatusOK {
		return 0, false
	}
	for line := range strings.Lines(string(a.body)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if name, _, _ := strings.Cut(series, "{"); name != routedByKV {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			sum, ok = sum+v, true
		}
	}
	return sum, ok
}
