package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// starter returns a text of the right length.
func starter(id string) string { return "# About " + id + "\n\n" + text(id, 345) }

// line returns a text as a line of JSON.
func line(id, text string) string { return fmt.Sprintf(`{"id":%q,"topic":"T","text":%q}`, id, text) }

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func ids(c *corpus.Corpus) (all []string) {
	for _, s := range c.Starters {
		all = append(all, s.ID)
	}
	return all
}

// The directory has folders, hidden files, links and files that are no texts.
func TestDirectory(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write(t, outside+"/linked.md", starter("l1"))
	write(t, dir+"/a.md", starter("a1"))
	write(t, dir+"/deep/er/b.txt", starter("b1"))
	write(t, dir+"/c.jsonl", line("c1", text("c1", 400))+"\nrubbish")
	write(t, dir+"/.hidden.md", starter("h1"))
	write(t, dir+"/.git/d.md", starter("d1"))
	write(t, dir+"/notes.pdf", "%PDF")
	write(t, dir+"/big.txt", strings.Repeat("a", maxDocument+1))
	require.NoError(t, os.Symlink(outside+"/linked.md", dir+"/linked.md"))
	require.NoError(t, os.Symlink(outside, dir+"/folder")) // a folder elsewhere is not followed
	require.NoError(t, os.Symlink(outside+"/gone.md", dir+"/gone.md"))

	began := time.Now()
	r, err := Open(t.Context(), Options{Path: dir})
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "c1", "deep-er-b", "linked"}, ids(r.Corpus()))
	assert.Regexp(t, `^.+ \([0-9a-f]{8}\)$`, r.Corpus().Name)
	assert.LessOrEqual(t, len(r.Corpus().Name), 200, "within the limit of a baseline's name")
	s := r.Status()
	assert.False(t, s.ReadAt.Before(began))
	assertSkipped(t, s.SkippedItems, map[string]string{
		"big.txt": "the limit is 16777216", "c.jsonl, line 2": "not a JSON object", "folder": "not a file",
		"gone.md": "no such file", "notes.pdf": "not a .jsonl",
	})
	s.ReadAt, s.SkippedItems = nil, nil
	assert.Equal(t, api.CorpusStatus{Source: dir, Tokenizer: corpus.Tokenizer, Cut: 1, Skipped: 5}, s)
}

// A single file is a corpus, and a file without a text is none. The status and the log name a bounded number of skipped
// items.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/good/one.jsonl", line("c1", starter("c1"))+strings.Repeat("\nrubbish", 1000))
	var log bytes.Buffer
	r, err := Open(t.Context(), Options{Path: dir + "/good/one.jsonl", Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	assert.Equal(t, []string{"c1"}, ids(r.Corpus()))
	assert.Equal(t, 1000, r.Status().Skipped)
	assert.Len(t, r.Status().SkippedItems, shownItems)
	assert.Equal(t, loggedItems, strings.Count(log.String(), "was skipped"))

	require.NoError(t, os.Mkdir(dir+"/empty", 0o755))
	write(t, dir+"/short/a.md", "# A\n\nShort.")
	for path, want := range map[string]string{
		"/none":  "cannot be read: no such file or directory",
		"/empty": "it has no .jsonl, .json, .md or .txt file",
		"/short": "no usable text; first of 1 skipped: a.md: it is too short: about 5 tokens",
	} {
		_, err := Open(t.Context(), Options{Path: dir + path})
		assert.ErrorContains(t, err, want)
	}
}

// A directory that changes is read again after each interval, and sooner after a failure.
func TestDirectoryIsRefreshed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.md", starter("a1"))
	synctest.Test(t, func(t *testing.T) {
		r, err := Open(t.Context(), Options{Path: dir, Refresh: time.Minute})
		require.NoError(t, err)
		first, reported := r.Corpus(), 0
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.Run(ctx, func(*corpus.Corpus) { reported++ })
		pass := func(d time.Duration) {
			wait.Advance(d)
			synctest.Wait()
		}
		pass(time.Minute)
		assert.Equal(t, time.Now(), *r.Status().ReadAt)
		assert.Zero(t, reported, "equal texts give the same corpus")
		assert.Same(t, first, r.Corpus())

		write(t, dir+"/b.md", starter("b1"))
		pass(time.Minute)
		assert.Equal(t, []string{"a", "b"}, ids(r.Corpus()))
		assert.NotEqual(t, first.Name, r.Corpus().Name)

		require.NoError(t, os.Rename(dir, dir+"-away"))
		pass(time.Minute)
		assert.Equal(t, "no such file or directory", r.Status().Problem)
		assert.Len(t, r.Corpus().Starters, 2, "the previous texts stay in use")
		require.NoError(t, os.Rename(dir+"-away", dir))
		pass(retryAfter)
		assert.Empty(t, r.Status().Problem)

		require.NoError(t, os.Remove(dir+"/b.md"))
		pass(time.Minute)
		assert.Equal(t, first.Name, r.Corpus().Name)
		require.NoError(t, os.Remove(dir+"/a.md"))
		pass(time.Minute)
		for range 2 { // also when it is unchanged
			assert.Contains(t, r.Status().Problem, "it has no .jsonl")
			assert.Len(t, r.Corpus().Starters, 1, "the previous text stays in use")
			pass(retryAfter)
		}
		assert.Equal(t, 2, reported)
	})
}

// service is a server of the two S3 calls that the reader makes, ListObjectsV2 and GetObject, for the bucket booth.
type service struct {
	*httptest.Server
	mu        sync.Mutex        // guards the fields that requests change
	objects   map[string]string // content by key
	away      bool
	refuses   string // suffix of keys that are refused; empty: none
	key       string // the required access key; empty: none
	gets      int    // number of fetched objects
	signature string // of the last request
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{objects: map[string]string{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.signature = req.Header.Get("Authorization")
		switch {
		case s.away:
			panic(http.ErrAbortHandler)
		case s.key != "" && !strings.Contains(s.signature, "Credential="+s.key+"/"),
			s.refuses != "" && strings.HasSuffix(req.URL.Path, s.refuses):
			refuse(w, http.StatusForbidden, "AccessDenied")
			return
		case s.key == "" && s.signature != "":
			t.Error("the request of an anonymous reader is signed")
		}
		if strings.HasSuffix(req.URL.Path, "/a.md") {
			s.gets++
		}
		s.answer(w, req)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// answer handles a call.
func (s *service) answer(w http.ResponseWriter, req *http.Request) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	content, known := s.objects[key]
	switch {
	case bucket != "booth":
		refuse(w, http.StatusNotFound, "NoSuchBucket")
	case key == "":
		s.list(w, req.URL.Query().Get("prefix"))
	case !known:
		refuse(w, http.StatusNotFound, "NoSuchKey")
	default:
		w.Header().Set("ETag", etag(content))
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		fmt.Fprint(w, content)
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `<Error><Code>%s</Code><Message>no</Message></Error>`, code)
}

func (s *service) list(w io.Writer, prefix string) {
	fmt.Fprint(w, "<ListBucketResult><IsTruncated>false</IsTruncated>")
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if text := s.objects[key]; strings.HasPrefix(key, prefix) {
			fmt.Fprintf(w, "<Contents><Key>%s</Key><ETag>%s</ETag><Size>%d</Size></Contents>", key, etag(text), len(text))
		}
	}
	fmt.Fprint(w, "</ListBucketResult>")
}

func etag(content string) string { return fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(content))) }

func (s *service) put(key, content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = content
}

// bucket returns the options for the service's bucket.
func (s *service) bucket() Bucket {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return Bucket{Endpoint: s.URL, Name: "booth", Prefix: "texts/", PathStyle: true, CA: ca}
}

// A bucket that is unavailable at the start is replaced by the built-in articles. Then it is listed and read again.
// TestDirectoryIsRefreshed checks later failures.
func TestBucket(t *testing.T) {
	s := newService(t)
	s.put("texts/a.md", starter("a1"))
	s.put("texts/b.jsonl", line("b1", starter("b1"))+"\n{}")
	s.put("texts/folder/", "")
	s.put("texts/folder/refused.md", starter("r1"))
	s.put("other/c.md", starter("c1"))
	s.away = true
	var log bytes.Buffer
	b, refresh := s.bucket(), time.Millisecond
	r, err := Open(t.Context(), Options{Bucket: &b, Refresh: refresh, Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	assert.Equal(t, "built-in articles", r.Corpus().Name)
	assert.Contains(t, r.Status().Problem, "does not answer")
	assert.Nil(t, r.Status().ReadAt)
	assert.Contains(t, log.String(), `in_use="built-in articles"`)
	assert.Equal(t, refresh, r.pause())

	s.away, s.refuses = false, "refused.md"
	reads := func(changed bool, problem string) {
		t.Helper()
		different, _ := r.read(t.Context())
		assert.Equal(t, changed, different)
		assert.Contains(t, r.Status().Problem, problem)
		assert.Equal(t, problem == "", r.Status().Problem == "")
	}
	reads(true, "")
	assert.Equal(t, []string{"a", "b1"}, ids(r.Corpus()))
	assert.Regexp(t, `^s3://booth/texts/ \(`, r.Corpus().Name)
	assert.EqualValues(t, []api.SkippedItem{
		{Name: "b.jsonl, line 2", Reason: `its id is ""; expected 1 to 100 letters, digits, dots, hyphens and underscores`},
		{Name: "folder/refused.md", Reason: "reading it from the bucket failed: AccessDenied"},
	}, r.Status().SkippedItems)

	s.refuses = ""
	reads(true, "")
	assert.Equal(t, []string{"a", "b1", "folder-refused"}, ids(r.Corpus()))
	s.gets = 0
	reads(false, "")
	assert.Zero(t, s.gets, "an unchanged listing is not fetched again")

	ended, end := context.WithCancel(t.Context())
	end()
	_, err = r.read(ended)
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, r.Status().Problem, "a canceled reading is no problem of the corpus")
}

// Keys and certificate authorities are used, and the problem describes invalid ones.
func TestBucketAccess(t *testing.T) {
	s := newService(t)
	s.key = "booth-key"
	s.put("texts/a.md", starter("a1"))
	for _, tt := range []struct {
		name    string
		change  func(*Bucket)
		problem string
	}{
		{"with keys", func(*Bucket) {}, ""},
		{"a wrong key", func(b *Bucket) { b.AccessKey = "other" }, "the service rejects the keys (AccessDenied)"},
		{"no keys", func(b *Bucket) { b.AccessKey, b.SecretKey = "", "" }, "LOADGEN_CORPUS_S3_ACCESS_KEY"},
		{"another bucket", func(b *Bucket) { b.Name = "none" }, `no such bucket: "none"`},
		{"an unknown authority", func(b *Bucket) { b.CA = nil }, "unknown authority"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := s.bucket()
			b.Region, b.AccessKey, b.SecretKey = "ams3", "booth-key", "secret"
			tt.change(&b)
			r, err := Open(t.Context(), Options{Bucket: &b})
			require.NoError(t, err)
			assert.Contains(t, r.Status().Problem, tt.problem)
			assert.NotContains(t, r.Status().Problem, "secret")
			if tt.problem == "" {
				assert.Equal(t, []string{"a"}, ids(r.Corpus()))
				assert.Contains(t, s.signature, "/ams3/s3/")
				assert.Zero(t, r.pause(), "read once")
			}
		})
	}
}

// Without path style the bucket's name precedes the host.
func TestBucketInTheHost(t *testing.T) {
	var host atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		host.Store(req.Host)
		_, _ = io.WriteString(w, `<ListBucketResult></ListBucketResult>`)
	}))
	defer server.Close()
	b, err := newBucket(Bucket{Endpoint: "http://objects.example.org", Name: "booth"})
	require.NoError(t, err)
	proxy, err := url.Parse(server.URL)
	require.NoError(t, err)
	b.transport.Proxy = http.ProxyURL(proxy)
	_, err = b.documents(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "booth.objects.example.org", host.Load())
}

func TestInvalidBucketsAreRefused(t *testing.T) {
	for field, b := range map[string]Bucket{
		"corpus.s3.endpoint":   {Endpoint: "http://x/path", Name: "b"},
		"corpus.s3.access_key": {Endpoint: "http://x", Name: "b", AccessKey: "a"},
		"corpus.s3.ca_file":    {Endpoint: "https://x", Name: "b", CA: []byte("no PEM")},
	} {
		var bad *api.FieldError
		_, err := Open(t.Context(), Options{Bucket: &b})
		require.ErrorAs(t, err, &bad)
		assert.Equal(t, field, bad.Field)
	}
}
