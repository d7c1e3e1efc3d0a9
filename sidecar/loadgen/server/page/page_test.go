package page

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const document = "<title>booth</title>"

func built(t *testing.T) http.Handler {
	t.Helper()
	files := fstest.MapFS{
		"index.html":                            {Data: []byte(document)},
		"index.html.gz":                         {Data: zipped(t, document)},
		"assets/page.1a2b.js.gz":                {Data: zipped(t, "0")},
		"public/fonts/inter/Inter-Medium.woff2": {Data: []byte("font")},
		"public/build/img/icons/x.svg":          {Data: []byte("<svg/>")},
	}
	h := newHandler(files)
	require.NotNil(t, h)
	return h
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func get(h http.Handler, target string, header ...string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, body io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(body)
	require.NoError(t, err)
	return string(b)
}

// The address of each page gives the document, and every other one gives it with status 404. A missing file is not
// answered with the document.
func TestAddresses(t *testing.T) {
	h := built(t)
	for target, want := range map[string]int{
		"/": 200, "/?x=1": 200, "/conversations": 200, "/conversations/12": 200, "/guide": 200, "/architecture": 200,
		"/nothing": 404, "/conversations/12/turns": 404, "/index.html": 404, "/guide/": 404,
	} {
		res := get(h, target)
		require.Equal(t, want, res.StatusCode, target)
		require.Equal(t, document, text(t, res.Body), target)
		require.Equal(t, "no-cache", res.Header.Get("Cache-Control"), target)
		require.Equal(t, "text/html; charset=utf-8", res.Header.Get("Content-Type"), target)
		for _, policy := range []string{"script-src 'self';", "default-src 'none';", "frame-ancestors 'none'"} {
			require.Contains(t, res.Header.Get("Content-Security-Policy"), policy, target)
		}
		head := httptest.NewRecorder()
		h.ServeHTTP(head, httptest.NewRequest(http.MethodHead, target, nil))
		require.Zero(t, head.Body.Len(), target)
	}
	missing := []string{"/assets/old.js", "/assets/", "/public/", "/public/../index.html/x", "/assets/page.1a2b.js/x"}
	for _, target := range missing {
		res := get(h, target)
		require.GreaterOrEqual(t, res.StatusCode, 300, target)
		require.NotContains(t, text(t, res.Body), document, target)
	}
}

// Scripts are immutable, since their names change with them. Fonts and icons are kept for a day.
func TestFiles(t *testing.T) {
	const forever = "public, max-age=31536000, immutable"
	h := built(t)
	for target, want := range map[string][3]string{
		"/assets/page.1a2b.js":                   {"0", "text/javascript; charset=utf-8", forever},
		"/public/fonts/inter/Inter-Medium.woff2": {"font", "font/woff2", "public, max-age=86400"},
		"/public/build/img/icons/x.svg":          {"<svg/>", "image/svg+xml", "public, max-age=86400"},
	} {
		res := get(h, target)
		require.Equal(t, http.StatusOK, res.StatusCode, target)
		got := [3]string{text(t, res.Body), res.Header.Get("Content-Type"), res.Header.Get("Cache-Control")}
		require.Equal(t, want, got, target)
	}
}

// A client that accepts gzip gets compressed files where there are any.
func TestCompression(t *testing.T) {
	h := built(t)
	for target, want := range map[string]string{"/": document, "/nothing": document, "/assets/page.1a2b.js": "0"} {
		for _, accept := range []string{"gzip", "deflate, gzip , br"} {
			res := get(h, target, "Accept-Encoding", accept)
			require.Equal(t, "gzip", res.Header.Get("Content-Encoding"), target)
			require.Equal(t, "Accept-Encoding", res.Header.Get("Vary"))
			require.NotContains(t, res.Header.Get("Content-Type"), "gzip")
			unpacked, err := gzip.NewReader(res.Body)
			require.NoError(t, err)
			require.Equal(t, want, text(t, unpacked))
		}
		for _, accept := range []string{"", "br", "gzip;q=0"} {
			res := get(h, target, "Accept-Encoding", accept)
			require.Empty(t, res.Header.Get("Content-Encoding"), accept)
			require.Equal(t, want, text(t, res.Body))
		}
	}
	res := get(h, "/public/build/img/icons/x.svg", "Accept-Encoding", "gzip")
	require.Empty(t, res.Header.Get("Content-Encoding"))
}

// Without built files there is no page.
func TestNotBuilt(t *testing.T) {
	require.Nil(t, newHandler(fstest.MapFS{".gitignore": {}}))
}

// The paths agree with those of the front end.
func TestPathsAreTheRegistrys(t *testing.T) {
	registry, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "src", "pages", "registry.ts"))
	require.NoError(t, err)
	var want []string
	for _, found := range regexp.MustCompile(`path: '([^']*)'`).FindAllStringSubmatch(string(registry), -1) {
		path := cmp.Or(found[1], "{$}")
		want = append(want, "/"+regexp.MustCompile(`:(\w+)`).ReplaceAllString(path, "{$1}"))
	}
	require.ElementsMatch(t, want, paths)
}
