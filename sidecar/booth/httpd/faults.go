package httpd

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"kvbooth/sidecar/api"
)

// Faults are the shares of chat requests that fail, each from 0 to 1 and together at most 1. Real clusters have faults
// of the same kinds. The zero value disables all faults.
type Faults struct {
	HTTP500    float64 `json:"http_500"`   // refused with status 500
	HTTP429    float64 `json:"http_429"`   // refused with status 429 and a Retry-After
	Stall      float64 `json:"stall"`      // silent after some chunks, until the client disconnects
	Disconnect float64 `json:"disconnect"` // connection aborted after some chunks
}

// faultKind is the kind of failure of a request.
type faultKind int

const (
	faultNone faultKind = iota
	faultHTTP500
	faultHTTP429
	faultStall
	faultDisconnect
)

// share is the share of one kind, with its JSON field.
type share struct {
	field string
	value float64
	kind  faultKind
}

func (f Faults) shares() []share {
	return []share{
		{"http_500", f.HTTP500, faultHTTP500},
		{"http_429", f.HTTP429, faultHTTP429},
		{"stall", f.Stall, faultStall},
		{"disconnect", f.Disconnect, faultDisconnect},
	}
}

// validate returns an *[api.FieldError] for the first share out of range.
func (f Faults) validate() error {
	sum := 0.0
	for _, s := range f.shares() {
		if !(0 <= s.value && s.value <= 1) { // also refuses NaN
			return api.Refuse(s.field, s.value, "0 to 1")
		}
		if sum += s.value; sum > 1+1e-9 {
			return api.Refuse(s.field, s.value, "such that all fault shares add up to at most 1")
		}
	}
	return nil
}

// maxWhole is the maximum number of chunks that a request delivers before it stalls or is aborted.
const maxWhole = 16

// fault describes how one request fails.
type fault struct {
	kind  faultKind
	after int // number of chunks before a stall or a disconnection
}

const retryAfter = time.Second

// refusal returns the problem of a request that fails at once, nil for any other.
func (f fault) refusal() *problem {
	switch f.kind {
	case faultHTTP500:
		return newProblem(http.StatusInternalServerError, kindInternal, "injected fault: Internal server error")
	case faultHTTP429:
		return newProblem(http.StatusTooManyRequests, kindOverload, "injected fault: too many requests").
			retryIn(retryAfter)
	}
	return nil
}

// breaks reports whether the answer fails within the given chunks, and returns those chunks that are still delivered.
// An answer with fewer chunks fails before its end.
func (f fault) breaks(chunks []int, delivered int, ended bool) (last []int, broken bool) {
	if f.kind != faultStall && f.kind != faultDisconnect {
		return chunks, false
	}
	left := min(f.after-delivered, len(chunks))
	return chunks[:left], ended || delivered+left == f.after
}

// injector draws faults: for each number of requests the same ones with the same seed. It is safe for concurrent use.
type injector struct {
	mu     sync.Mutex
	rng    *rand.Rand
	faults Faults
}

func newInjector(seed uint64, f Faults) *injector {
	return &injector{rng: rand.New(rand.NewPCG(seed, 1)), faults: f}
}

// draw returns the fault of the next request.
func (i *injector) draw() fault {
	i.mu.Lock()
	defer i.mu.Unlock()
	drawn, after := i.rng.Float64(), 1+i.rng.IntN(maxWhole)
	for _, s := range i.faults.shares() {
		if drawn -= s.value; drawn < 0 {
			return fault{kind: s.kind, after: after}
		}
	}
	return fault{}
}

func (i *injector) get() Faults {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.faults
}

func (i *injector) set(f Faults) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.faults = f
}
