package source

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// starter is a text of the right length.
func starter(id string) string { return "# About " + id + "\n\n" + text(id, 345) }

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

// A directory as people have them: with folders, hidden files, links and rubbish.
func TestDirectory(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write(t, outside+"/linked.md", starter("l1"))
	write(t, dir+"/a.md", starter("a1"))
	write(t, dir+"/deep/er/b.txt", starter("b1"))
	write(t, dir+"/c.jsonl", fmt.Sprintf(`{"id":"c1","topic":"C","text":%q}`, text("c1", 400))+"\nrubbish")
	write(t, dir+"/.hidden.md", starter("h1"))
	write(t, dir+"/.git/d.md", starter("d1"))
	write(t, dir+"/notes.pdf", "%PDF")
	write(t, dir+"/big.txt", strings.Repeat("a", maxDocument+1))
	require.NoError(t, os.Symlink(outside+"/linked.md", dir+"/linked.md"))
	require.NoError(t, os.Symlink(outside, dir+"/folder")) // a folder elsewhere is not followed
	require.NoError(t, os.Symlink(outside+"/gone.md", dir+"/gone.md"))

	r, err := Open(t.Context(), Options{Path: dir})
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "c1", "deep-er-b", "linked"}, ids(r.Corpus()))
	assert.Regexp(t, `^.+ \([0-9a-f]{8}\)$`, r.Corpus().Name)
	assert.LessOrEqual(t, len(r.Corpus().Name), 200, "as long as a baseline may tell it")
	s := r.Status()
	assert.Equal(t, 1, s.Cut)
	assert.Equal(t, corpus.Tokenizer, s.Tokenizer)
	assert.Equal(t, dir, s.Source)
	assert.WithinDuration(t, time.Now(), *s.ReadAt, time.Minute)
	assert.Empty(t, s.Problem)
	assert.Equal(t, 5, s.Skipped)
	reasons := map[string]string{}
	for _, it := range s.SkippedItems {
		reasons[it.Name] = it.Reason
	}
	assert.Contains(t, reasons["big.txt"], "the limit is 16777216")
	assert.Contains(t, reasons["c.jsonl, line 2"], "not a JSON object")
	assert.Contains(t, reasons["folder"], "not a file")
	assert.Contains(t, reasons["gone.md"], "no such file")
	assert.Contains(t, reasons["notes.pdf"], "not a .jsonl")
}

// A single file will do; what holds no text does not.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/good/one.jsonl", fmt.Sprintf(`{"id":"c1","topic":"C","text":%q}`, starter("c1")))
	r, err := Open(t.Context(), Options{Path: dir + "/good/one.jsonl"})
	require.NoError(t, err)
	assert.Equal(t, []string{"c1"}, ids(r.Corpus()))

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

// The number of items that the status names is bounded; the count is not.
func TestSkippedAreBounded(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.md", starter("a1"))
	write(t, dir+"/b.jsonl", strings.Repeat("rubbish\n", 1000))
	var log bytes.Buffer
	r, err := Open(t.Context(), Options{Path: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	s := r.Status()
	assert.Equal(t, 1000, s.Skipped)
	assert.Len(t, s.SkippedItems, shownItems)
	assert.Equal(t, loggedItems, strings.Count(log.String(), "was skipped"))
}

// keeper collects the corpora that a reader tells of.
type keeper struct {
	mu   sync.Mutex
	told []*corpus.Corpus
}

func (k *keeper) changed(c *corpus.Corpus) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.told = append(k.told, c)
}

func (k *keeper) times() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.told)
}

// keep runs a reader; it ends with the test.
func keep(t *testing.T, r *Reader) *keeper {
	t.Helper()
	k := &keeper{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx, k.changed)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return k
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, 20*time.Second, 5*time.Millisecond, what)
}

// A directory that changes while it is in use.
func TestDirectoryIsRefreshed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.md", starter("a1"))
	r, err := Open(t.Context(), Options{Path: dir, Refresh: 10 * time.Millisecond})
	require.NoError(t, err)
	first, k := r.Corpus(), keep(t, r)
	read := *r.Status().ReadAt
	eventually(t, "it is read again", func() bool { return r.Status().ReadAt.After(read) })
	assert.Zero(t, k.times(), "the same texts are the same corpus")
	assert.Same(t, first, r.Corpus())

	write(t, dir+"/b.md", starter("b1"))
	eventually(t, "a second text", func() bool { return len(r.Corpus().Starters) == 2 })
	assert.NotEqual(t, first.Name, r.Corpus().Name)

	require.NoError(t, os.Rename(dir, dir+"-away"))
	eventually(t, "it is away", func() bool { return r.Status().Problem == "no such file or directory" })
	assert.Len(t, r.Corpus().Starters, 2, "the texts stay")
	require.NoError(t, os.Rename(dir+"-away", dir))
	eventually(t, "it is back", func() bool { return r.Status().Problem == "" })

	require.NoError(t, os.Remove(dir+"/b.md"))
	eventually(t, "the first again", func() bool { return r.Corpus().Name == first.Name })
	require.NoError(t, os.Remove(dir+"/a.md"))
	eventually(t, "nothing is left", func() bool { return strings.Contains(r.Status().Problem, "it has no .jsonl") })
	assert.Len(t, r.Corpus().Starters, 1, "the text stays")
}

// service is an S3 server in this process.
type service struct {
	*httptest.Server
	backend gofakes3.Backend
	away    atomic.Bool
	refuses atomic.Value // the key that cannot be had
	key     string       // the access key that it wants; empty: none
	gets    atomic.Int64 // of objects
	region  atomic.Value // asked for in the last signature
}

func newService(t *testing.T, secure bool, options ...gofakes3.Option) *service {
	t.Helper()
	s := &service{backend: s3mem.New()}
	s.refuses.Store("")
	s.region.Store("")
	s3 := gofakes3.New(s.backend, options...).Server()
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		signature := req.Header.Get("Authorization")
		switch refused := s.refuses.Load().(string); {
		case s.away.Load():
			panic(http.ErrAbortHandler)
		case s.key != "" && !strings.Contains(signature, "Credential="+s.key+"/"), refused != "" && strings.HasSuffix(req.URL.Path, refused):
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<Error><Code>AccessDenied</Code><Message>no</Message></Error>`)
			return
		case s.key == "" && signature != "":
			t.Error("an anonymous reader signs nothing")
		}
		s.region.Store(signature)
		if strings.Count(strings.Trim(req.URL.Path, "/"), "/") > 0 {
			s.gets.Add(1)
		}
		s3.ServeHTTP(w, req)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	require.NoError(t, s.backend.CreateBucket("booth"))
	return s
}

func (s *service) put(t *testing.T, key, content string) {
	t.Helper()
	_, err := s.backend.PutObject("booth", key, map[string]string{"Last-Modified": time.Now().UTC().Format(http.TimeFormat)}, strings.NewReader(content), int64(len(content)), nil)
	require.NoError(t, err)
}

func (s *service) remove(t *testing.T, key string) {
	t.Helper()
	_, err := s.backend.DeleteObject("booth", key)
	require.NoError(t, err)
}

// A bucket is listed, refreshed, lost and back.
func TestBucket(t *testing.T) {
	s := newService(t, false)
	s.put(t, "texts/a.md", starter("a1"))
	s.put(t, "texts/b.jsonl", fmt.Sprintf(`{"id":"b1","topic":"B","text":%q}`, starter("b1"))+"\n{}")
	s.put(t, "texts/folder/", "")
	s.put(t, "texts/folder/refused.md", starter("r1"))
	s.put(t, "other/c.md", starter("c1"))
	s.refuses.Store("refused.md")
	r, err := Open(t.Context(), Options{
		Bucket: &Bucket{Endpoint: s.URL, Name: "booth", Prefix: "texts/", PathStyle: true}, Refresh: 10 * time.Millisecond,
	})
	require.NoError(t, err)
	assert.Empty(t, r.Status().Problem)
	assert.Equal(t, []string{"a", "b1"}, ids(r.Corpus()))
	assert.True(t, strings.HasPrefix(r.Corpus().Name, "s3://booth/texts/ ("), r.Corpus().Name)
	status := r.Status()
	assert.Equal(t, []api.SkippedItem{
		{Name: "b.jsonl, line 2", Reason: `its id is ""; expected 1 to 100 letters, digits, dots, hyphens and underscores`},
		{Name: "folder/refused.md", Reason: "reading it from the bucket failed: AccessDenied"},
	}, status.SkippedItems)
	first, k := r.Corpus(), keep(t, r)

	s.refuses.Store("")
	eventually(t, "what was refused is there", func() bool { return len(r.Corpus().Starters) == 3 })
	gets, read := s.gets.Load(), *r.Status().ReadAt
	eventually(t, "it is listed again", func() bool { return r.Status().ReadAt.After(read) })
	assert.Equal(t, gets, s.gets.Load(), "what is listed as before is not fetched again")
	s.remove(t, "texts/folder/refused.md")
	eventually(t, "it is gone", func() bool { return r.Corpus().Name == first.Name })
	assert.Equal(t, 2, k.times())

	s.away.Store(true)
	eventually(t, "it is lost", func() bool { return strings.Contains(r.Status().Problem, "does not answer") })
	assert.Equal(t, first.Name, r.Corpus().Name, "the texts stay")
	s.put(t, "texts/a.md", starter("a2"))
	s.away.Store(false)
	eventually(t, "it is back, with another text", func() bool { return r.Corpus().Name != first.Name })
	assert.Empty(t, r.Status().Problem)
	assert.Contains(t, r.Corpus().Starters[0].Text, "About a2")
	assert.Equal(t, "a", r.Corpus().Starters[0].ID)

	s.remove(t, "texts/a.md")
	s.remove(t, "texts/b.jsonl")
	eventually(t, "it is empty", func() bool { return strings.Contains(r.Status().Problem, "it has no .jsonl") })
	s.away.Store(true)
	eventually(t, "it is lost", func() bool { return strings.Contains(r.Status().Problem, "does not answer") })
	s.away.Store(false)
	eventually(t, "it is still empty", func() bool { return strings.Contains(r.Status().Problem, "it has no .jsonl") })
	assert.Len(t, r.Corpus().Starters, 2, "the texts stay")
}

// A bucket that is away at the start is replaced by the built-in articles.
func TestBucketComesLater(t *testing.T) {
	s := newService(t, false)
	s.put(t, "a.md", starter("a1"))
	s.away.Store(true)
	var log bytes.Buffer
	r, err := Open(t.Context(), Options{
		Bucket: &Bucket{Endpoint: s.URL, Name: "booth", PathStyle: true}, Refresh: 10 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	assert.Equal(t, "built-in articles", r.Corpus().Name)
	assert.Len(t, r.Corpus().Starters, 10)
	assert.Contains(t, r.Status().Problem, "does not answer")
	assert.Nil(t, r.Status().ReadAt)
	assert.Contains(t, log.String(), `in_use="built-in articles"`)
	assert.Equal(t, 10*time.Millisecond, r.pause())
	k := keep(t, r)
	s.away.Store(false)
	eventually(t, "it is there", func() bool { return k.times() == 1 })
	assert.Equal(t, []string{"a"}, ids(r.Corpus()))
}

// Keys, own authority, styles of address, and what is said where they are wrong.
func TestBucketAccess(t *testing.T) {
	s := newService(t, true)
	s.key = "booth-key"
	s.put(t, "a.md", starter("a1"))
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	good := Bucket{Endpoint: s.URL, Name: "booth", PathStyle: true, Region: "ams3", AccessKey: "booth-key", SecretKey: "secret", CA: ca}
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
			b := good
			tt.change(&b)
			r, err := Open(t.Context(), Options{Bucket: &b})
			require.NoError(t, err)
			assert.Contains(t, r.Status().Problem, tt.problem)
			assert.NotContains(t, r.Status().Problem, "secret")
			if tt.problem == "" {
				assert.Equal(t, []string{"a"}, ids(r.Corpus()))
				assert.Contains(t, s.region.Load(), "/ams3/s3/")
				assert.Zero(t, r.pause(), "read once")
			}
		})
	}
}

// Without path style the bucket's name stands in front of the host.
func TestBucketInTheHost(t *testing.T) {
	var host atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		host.Store(req.Host)
		_, _ = io.WriteString(w, `<ListBucketResult></ListBucketResult>`)
	}))
	defer server.Close()
	b, err := newBucket(Bucket{Endpoint: "http://objects.example.org", Name: "booth"})
	require.NoError(t, err)
	b.transport.DialContext = nil
	b.transport.Proxy = http.ProxyURL(must(t, server.URL))
	_, err = b.documents(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "booth.objects.example.org", host.Load())
}

func must(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	require.NoError(t, err)
	return u
}

func TestBadBuckets(t *testing.T) {
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

// What the end of the program cuts short is no problem of the corpus.
func TestReadingIsCutShort(t *testing.T) {
	s := newService(t, false)
	s.put(t, "a.md", starter("a1"))
	r, err := Open(t.Context(), Options{Bucket: &Bucket{Endpoint: s.URL, Name: "booth", PathStyle: true}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = r.read(ctx)
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, r.Status().Problem)
}
