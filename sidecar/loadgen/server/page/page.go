// Package page delivers the sidecar's own page: the app's pages outside Grafana,
// built from src/standalone into the folder files and embedded here, most of
// them compressed only. A program that was built without Node.js has no page.
package page

import (
	"compress/gzip"
	"embed"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed all:files
var embedded embed.FS

// policy lets the page load what the server has, and nothing else. Grafana's
// components make their style sheets as they go. 'self' covers the stream too.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Names of the built files.
const (
	index  = "index.html"
	hashed = "assets/" // their names change with what is in them
	shared = "public/" // fonts and icons, under the names that Grafana's components know
	packed = ".gz"     // the end of a compressed file's name
)

// paths are the pages' addresses, as patterns of [http.ServeMux]. A test holds
// them against src/pages/registry.ts.
var paths = []string{
	"/{$}", "/side-by-side", "/conversations", "/conversations/{id}", "/architecture", "/kv-routing",
	"/dynamo-features", "/what-if", "/benchmarks", "/history", "/events", "/guide", "/stage",
}

// Handler delivers the page. It is nil where the program was built without one.
func Handler() http.Handler {
	files, err := fs.Sub(embedded, "files")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return newHandler(files)
}

func newHandler(files fs.FS) http.Handler {
	if _, err := fs.Stat(files, index); err != nil {
		return nil
	}
	h := &handler{files: files}
	mux := http.NewServeMux()
	for _, p := range paths {
		mux.HandleFunc(p, func(w http.ResponseWriter, r *http.Request) { h.index(w, r, http.StatusOK) })
	}
	mux.HandleFunc("/"+hashed, h.file("public, max-age=31536000, immutable"))
	mux.HandleFunc("/"+shared, h.file("public, max-age=86400"))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { h.index(w, r, http.StatusNotFound) })
	return mux
}

type handler struct{ files fs.FS }

// index gives the document that every page begins with. An address that is no
// page's gets it too, with the right status: the page says so in words.
func (h *handler) index(w http.ResponseWriter, r *http.Request, status int) {
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Cache-Control", "no-cache")
	h.send(w, r, index, status)
}

func (h *handler) file(caching string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
		if !h.has(name) && !h.has(name+packed) {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", caching)
		h.send(w, r, name, http.StatusOK)
	}
}

// has reports whether there is a file of this name.
func (h *handler) has(name string) bool {
	info, err := fs.Stat(h.files, name)
	return err == nil && !info.IsDir()
}

// send gives a file, compressed where the build left it compressed and the
// browser takes that.
func (h *handler) send(w http.ResponseWriter, r *http.Request, name string, status int) {
	w.Header().Set("Content-Type", contentType(name))
	w.Header().Add("Vary", "Accept-Encoding")
	f, err := h.open(w, r, name)
	if err != nil {
		http.Error(w, "the file no longer exists", http.StatusInternalServerError)
		return
	}
	defer f.Close()
	if content, ok := f.(io.ReadSeeker); ok && status == http.StatusOK {
		http.ServeContent(w, r, name, time.Time{}, content)
		return
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = io.Copy(w, f) // an error means that the client has disconnected
	}
}

// open opens a file. One that is embedded in its compressed form alone is decompressed for a reader that takes no gzip.
func (h *handler) open(w http.ResponseWriter, r *http.Request, name string) (io.ReadCloser, error) {
	if TakesGzip(r) {
		f, err := h.files.Open(name + packed)
		if !errors.Is(err, fs.ErrNotExist) {
			w.Header().Set("Content-Encoding", "gzip")
			return f, err
		}
	}
	f, err := h.files.Open(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if f, err = h.files.Open(name + packed); err != nil {
		return nil, err
	}
	return gzip.NewReader(f) // an embedded file need not be closed
}

// TakesGzip reports whether the reader of an answer takes it compressed. It is exact for what browsers send; a quality
// of zero is none of it.
func TakesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(part) == "gzip" {
			return true
		}
	}
	return false
}

// contentType does not depend on what the system has registered.
func contentType(name string) string {
	switch ext := path.Ext(name); ext {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".woff2":
		return "font/woff2"
	case ".svg":
		return "image/svg+xml"
	case ".txt":
		return "text/plain; charset=utf-8"
	default:
		return mime.TypeByExtension(ext)
	}
}
