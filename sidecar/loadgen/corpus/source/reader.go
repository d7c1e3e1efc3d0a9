package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
)

const (
	readWithin  = time.Minute      // time limit of one reading
	openWithin  = 15 * time.Second // time limit of the first reading, which delays the start
	retryAfter  = 10 * time.Second // after a failed reading, unless the interval is shorter
	shownItems  = 20               // skipped items in the status
	loggedItems = 100              // skipped items in the log, at each change
	maxName     = 150              // characters of a place's name
)

// Options configure the source and the interval of readings.
type Options struct {
	Path    string        // a directory or a file
	Bucket  *Bucket       // replaces Path
	Refresh time.Duration // 0 reads once
	Log     *slog.Logger  // nil disables the log
}

// Reader keeps a corpus up to date with its source. It is safe for concurrent use.
type Reader struct {
	place   place // used by Open, then by Run
	refresh time.Duration
	log     *slog.Logger

	mu       sync.Mutex
	corpus   *corpus.Corpus
	status   api.CorpusStatus
	unusable error // why the present contents of the place are no corpus
}

// Open reads the corpus. A path that cannot be read, or has no usable text, gives an error. A
// bucket may be unavailable at first: the built-in articles then replace it, the status reports
// the problem, and Run retries. Invalid options give an [api.FieldError].
func Open(ctx context.Context, o Options) (*Reader, error) {
	r := &Reader{refresh: o.Refresh, log: o.Log}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if o.Bucket == nil {
		r.place = &folder{path: o.Path}
	} else {
		b, err := newBucket(*o.Bucket)
		if err != nil {
			return nil, err
		}
		r.place = b
	}
	standIn, err := corpus.Builtin()
	if err != nil {
		return nil, err
	}
	r.corpus = standIn
	r.status.Source = r.place.name()
	ctx, cancel := context.WithTimeoutCause(ctx, openWithin, fmt.Errorf("it took more than %s", openWithin))
	defer cancel()
	if _, err := r.read(ctx); err != nil && o.Bucket == nil {
		return nil, fmt.Errorf("the corpus %s cannot be read: %w", o.Path, err)
	}
	return r, nil
}

// Corpus returns the corpus in use.
func (r *Reader) Corpus() *corpus.Corpus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.corpus
}

// Status reports what was read, and the present problem. The caller sets name, number and
// questioner.
func (r *Reader) Status() api.CorpusStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// Run rereads the source until ctx ends, and calls changed with each new corpus, from its own
// goroutine.
func (r *Reader) Run(ctx context.Context, changed func(*corpus.Corpus)) {
	for {
		pause := r.pause()
		if pause == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if different, _ := r.read(ctx); different {
			changed(r.Corpus())
		}
	}
}

// pause returns the time to the next reading, 0 where there is none.
func (r *Reader) pause() time.Duration {
	neverRead := r.refresh == 0 && r.Status().ReadAt == nil
	if r.Status().Problem != "" && (neverRead || r.refresh > retryAfter) {
		return retryAfter
	}
	return r.refresh
}

// read reads the source once. It returns whether the corpus has changed, and the error, which
// is also in the status.
func (r *Reader) read(ctx context.Context) (changed bool, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, readWithin, fmt.Errorf("it took more than %s", readWithin))
	defer cancel()
	documents, err := r.place.documents(limited)
	if limited.Err() != nil && err != nil {
		err = context.Cause(limited)
	}
	if errors.Is(err, context.Canceled) { // the program exits
		return false, err
	}
	r.mu.Lock()
	unusable := r.unusable
	r.mu.Unlock()
	switch {
	case errors.Is(err, errUnchanged) && unusable != nil:
		r.failed(unusable)
		return false, unusable
	case errors.Is(err, errUnchanged):
		r.succeeded()
		return false, nil
	case err != nil:
		r.failed(err)
		return false, err
	}
	f := fitAll(documents)
	if len(f.starters) == 0 {
		err = f.nothing()
		r.failed(err)
		r.mu.Lock()
		r.unusable = err
		r.status.Skipped = len(f.skipped)
		r.status.SkippedItems = first(f.skipped, shownItems)
		r.mu.Unlock()
		return false, err
	}
	return r.replace(f), nil
}

func fitAll(documents []document) *fitted {
	var items []item
	var skipped []api.SkippedItem
	for _, d := range documents {
		found, bad := decode(d)
		items = append(items, found...)
		skipped = append(skipped, bad...)
	}
	f := fit(items)
	f.skipped = append(skipped, f.skipped...)
	return f
}

// nothing returns the error for a source without a starter.
func (f *fitted) nothing() error {
	if len(f.skipped) == 0 {
		return errors.New("it has no .jsonl, .json, .md or .txt file")
	}
	return fmt.Errorf("it has no usable text; first of %d skipped: %s: %s", len(f.skipped), f.skipped[0].Name,
		f.skipped[0].Reason)
}

func first(items []api.SkippedItem, n int) []api.SkippedItem { return items[:min(n, len(items))] }

func (r *Reader) succeeded() {
	now := time.Now()
	r.mu.Lock()
	back := r.status.Problem != ""
	r.status.ReadAt = &now
	r.status.Problem = ""
	r.unusable = nil
	r.mu.Unlock()
	if back {
		r.log.Info("the corpus is readable again", "source", r.place.name())
	}
}

// failed records a failed reading. It logs each problem once.
func (r *Reader) failed(err error) {
	r.mu.Lock()
	known := r.status.Problem == err.Error()
	r.status.Problem = err.Error()
	name := r.corpus.Name
	r.mu.Unlock()
	if !known {
		r.log.Warn("the corpus was not read", "source", r.place.name(), "error", err, "in_use", name)
	}
}

// replace replaces the corpus by what was read, and returns whether it has changed. An equal
// corpus is kept, since conversations refer to it.
func (r *Reader) replace(f *fitted) (changed bool) {
	r.succeeded()
	c := &corpus.Corpus{Name: fmt.Sprintf("%s (%s)", short(r.place.name()), version(f.starters)), Starters: f.starters}
	r.mu.Lock()
	changed = c.Name != r.corpus.Name
	if changed {
		r.corpus = c
	}
	worthLogging := changed || r.status.Skipped != len(f.skipped)
	r.status.Tokenizer = corpus.Tokenizer
	r.status.Cut = f.cut
	r.status.Joined = f.joined
	r.status.Skipped = len(f.skipped)
	r.status.SkippedItems = first(f.skipped, shownItems)
	r.mu.Unlock()
	if !worthLogging {
		return false
	}
	r.log.Info("the corpus was read", "corpus", c.Name, "starters", len(f.starters), "cut", f.cut, "joined", f.joined,
		"skipped", len(f.skipped))
	for _, it := range first(f.skipped, loggedItems) {
		r.log.Warn("a text of the corpus was skipped", "name", it.Name, "reason", it.Reason)
	}
	return changed
}

// short returns the end of a name, which is more specific than its beginning.
func short(name string) string {
	if r := []rune(name); len(r) > maxName {
		return "…" + string(r[len(r)-maxName:])
	}
	return name
}
