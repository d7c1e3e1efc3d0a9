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
	readWithin  = time.Minute      // one reading
	openWithin  = 15 * time.Second // the first one, which the start waits for
	againAfter  = 10 * time.Second // the next try after one that failed, unless the interval is shorter
	shownItems  = 20               // of those that were skipped, in the status
	loggedItems = 100              // and in the log, at each change
	maxName     = 150              // characters of a place's name
)

// Options say what to read, and how often.
type Options struct {
	Path    string        // a directory or a file
	Bucket  *Bucket       // in its place
	Refresh time.Duration // 0 reads once
	Log     *slog.Logger  // nil discards
}

// Reader keeps a corpus in step with the place that it comes from. It is safe for
// concurrent use.
type Reader struct {
	place   place // Open's first, then Run's
	refresh time.Duration
	log     *slog.Logger

	mu       sync.Mutex
	corpus   *corpus.Corpus
	status   api.CorpusStatus
	unusable error // why what the place holds is no corpus
}

// Open reads the corpus. A path that cannot be read, or holds no usable text, gives
// an error. A bucket may be away for a while: then the built-in articles stand in,
// the status says so, and Run goes on trying. Options that are wrong give an
// [api.FieldError].
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
	r.corpus, r.status.Source = standIn, r.place.name()
	ctx, cancel := context.WithTimeoutCause(ctx, openWithin, fmt.Errorf("it took more than %s", openWithin))
	defer cancel()
	if _, err := r.read(ctx); err != nil && o.Bucket == nil {
		return nil, fmt.Errorf("the corpus %s cannot be read: %w", o.Path, err)
	}
	return r, nil
}

// Corpus is the one in use.
func (r *Reader) Corpus() *corpus.Corpus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.corpus
}

// Status says what was read, and what is wrong. Name, number and questioner are
// left to who uses the corpus.
func (r *Reader) Status() api.CorpusStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// Run reads again and again until ctx ends, and calls changed with each corpus that
// is not the one before, from its own goroutine.
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

// pause is the time to the next reading, 0 where there is none.
func (r *Reader) pause() time.Duration {
	if r.Status().Problem != "" && (r.refresh == 0 && r.Status().ReadAt == nil || r.refresh > againAfter) {
		return againAfter
	}
	return r.refresh
}

// read reads once, and says whether the corpus is another one now. The error is
// in the status, too.
func (r *Reader) read(ctx context.Context) (changed bool, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, readWithin, fmt.Errorf("it took more than %s", readWithin))
	defer cancel()
	documents, err := r.place.documents(limited)
	if limited.Err() != nil && err != nil {
		err = context.Cause(limited)
	}
	if errors.Is(err, context.Canceled) { // the program ends
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
		r.readWell()
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
		r.unusable, r.status.Skipped, r.status.SkippedItems = err, len(f.skipped), first(f.skipped, shownItems)
		r.mu.Unlock()
		return false, err
	}
	return r.take(f), nil
}

// fitAll makes starters of documents.
func fitAll(documents []document) *fitted {
	var items []item
	var skipped []api.SkippedItem
	for _, d := range documents {
		found, bad := decode(d)
		items, skipped = append(items, found...), append(skipped, bad...)
	}
	f := fit(items)
	f.skipped = append(skipped, f.skipped...)
	return f
}

// nothing says why there is no starter.
func (f *fitted) nothing() error {
	if len(f.skipped) == 0 {
		return errors.New("it has no .jsonl, .json, .md or .txt file")
	}
	return fmt.Errorf("it has no usable text; first of %d skipped: %s: %s", len(f.skipped), f.skipped[0].Name, f.skipped[0].Reason)
}

func first(items []api.SkippedItem, n int) []api.SkippedItem { return items[:min(n, len(items))] }

// readWell notes that the place was read.
func (r *Reader) readWell() {
	now := time.Now()
	r.mu.Lock()
	back := r.status.Problem != ""
	r.status.ReadAt, r.status.Problem, r.unusable = &now, "", nil
	r.mu.Unlock()
	if back {
		r.log.Info("the corpus is readable again", "source", r.place.name())
	}
}

// failed notes why it was not. The log tells each problem once.
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

// take puts what was read in the place of what was there, and says whether it
// differs. What is the same keeps its place, with the conversations on it.
func (r *Reader) take(f *fitted) (changed bool) {
	r.readWell()
	c := &corpus.Corpus{Name: fmt.Sprintf("%s (%s)", short(r.place.name()), version(f.starters)), Starters: f.starters}
	r.mu.Lock()
	changed = c.Name != r.corpus.Name
	if changed {
		r.corpus = c
	}
	worthLogging := changed || r.status.Skipped != len(f.skipped)
	r.status.Tokenizer, r.status.Cut, r.status.Joined = corpus.Tokenizer, f.cut, f.joined
	r.status.Skipped, r.status.SkippedItems = len(f.skipped), first(f.skipped, shownItems)
	r.mu.Unlock()
	if !worthLogging {
		return false
	}
	r.log.Info("the corpus was read", "corpus", c.Name, "starters", len(f.starters), "cut", f.cut, "joined", f.joined, "skipped", len(f.skipped))
	for _, it := range first(f.skipped, loggedItems) {
		r.log.Warn("a text of the corpus was skipped", "name", it.Name, "reason", it.Reason)
	}
	return changed
}

// short is the end of a name, which tells more than its beginning.
func short(name string) string {
	if r := []rune(name); len(r) > maxName {
		return "…" + string(r[len(r)-maxName:])
	}
	return name
}
