package local

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Timeouts of a download.
const (
	responseTimeout = 5 * time.Second  // longest time until the response begins
	stallTimeout    = 30 * time.Second // longest time without a byte
)

// checksumLimit is the largest list of checksums that is read, in bytes.
const checksumLimit = 16 << 10

// download is a file to fetch and to compare with its published SHA-256.
type download struct {
	url, file string
	sums      string // URL of the SHA-256
	progress  io.Writer
}

// run fetches the file. Without an error the file is complete and its SHA-256 is the published one.
func (d download) run(ctx context.Context) error {
	want, err := publishedChecksum(ctx, d.sums, filepath.Base(d.file))
	if err != nil {
		return err
	}
	got, err := d.fetch(ctx)
	if err != nil {
		return err
	}
	if !strings.EqualFold(got, want) {
		return fmt.Errorf("%s was discarded: its SHA-256 is %s, but the one published at %s is %s",
			d.url, got, d.sums, want)
	}
	fmt.Fprintf(d.progress, "its SHA-256 matches the one published at %s\n", d.sums)
	return nil
}

// fetch writes the file and returns its SHA-256.
func (d download) fetch(ctx context.Context) (checksum string, err error) {
	file, err := os.Create(d.file)
	if err != nil {
		return "", err
	}
	body, size, err := open(ctx, d.url)
	if err != nil {
		return "", errors.Join(err, file.Close())
	}
	defer body.Close()
	shown := &counter{report: newReport(d.progress, size), text: filepath.Base(d.file)}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, sum, shown), body)
	shown.close()
	if err := errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("%s: download failed after %.1f of %.1f MB: %w",
			d.url, float64(shown.done)/(1<<20), float64(size)/(1<<20), err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// counter reports the number of bytes written to it.
type counter struct {
	*report
	text string
	done int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.done += int64(len(p))
	c.show(c.done, c.text)
	return len(p), nil
}

// publishedChecksum reads the SHA-256 of a file: from the line of a list that names the file, or from a text with one
// line, regardless of the name in it.
func publishedChecksum(ctx context.Context, url, file string) (string, error) {
	body, _, err := open(ctx, url)
	if err != nil {
		return "", err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, checksumLimit))
	if err != nil {
		return "", fmt.Errorf("%s: %w", url, err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range lines {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		bytes, err := hex.DecodeString(sum)
		isSum := err == nil && len(bytes) == sha256.Size
		if isSum && (len(lines) == 1 || strings.TrimLeft(name, " *") == file) {
			return sum, nil
		}
	}
	return "", fmt.Errorf("%s contains no SHA-256 of %s: %.80q", url, file, text)
}

// open requests a URL and returns the body with its size in bytes, -1 if the size is unknown. It fails if the response
// does not begin within responseTimeout. Reading fails if no byte arrives within stallTimeout.
func open(ctx context.Context, url string) (io.ReadCloser, int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	timeout := time.AfterFunc(responseTimeout, func() { cancel(errSilent) })
	b := &body{cancel: cancel, timeout: timeout, ctx: ctx}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, err
	}
	request.Close = true                            // it is the only request to the server
	response, err := http.DefaultClient.Do(request) //nolint:bodyclose // b.Close closes it
	if err != nil {
		if errors.Is(b.explain(err), errSilent) {
			err = fmt.Errorf("%s: %w for %v", url, errSilent, responseTimeout)
		}
		return nil, 0, errors.Join(err, b.Close())
	}
	b.ReadCloser = response.Body
	if response.StatusCode != http.StatusOK {
		return nil, 0, errors.Join(fmt.Errorf("%s returned %s", url, response.Status), b.Close())
	}
	return b, response.ContentLength, nil
}

var errSilent = errors.New("no response from the server")

// body is the body of a response. Reading it fails if no byte arrives for a while.
type body struct {
	io.ReadCloser
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timeout *time.Timer
}

func (b *body) Read(p []byte) (int, error) {
	b.timeout.Reset(stallTimeout)
	n, err := b.ReadCloser.Read(p)
	return n, b.explain(err)
}

// explain returns the cause of an aborted request.
func (b *body) explain(err error) error {
	if err != nil && errors.Is(context.Cause(b.ctx), errSilent) {
		return errSilent
	}
	return err
}

func (b *body) Close() error {
	b.timeout.Stop()
	b.cancel(nil)
	if b.ReadCloser == nil {
		return nil
	}
	return b.ReadCloser.Close()
}

// unpack unpacks an archive, .tar.gz or .zip, into a new folder.
func unpack(ctx context.Context, file, dir string) error {
	if strings.HasSuffix(file, ".zip") {
		z, err := zip.OpenReader(file)
		if err != nil {
			return err
		}
		defer z.Close()
		return os.CopyFS(dir, z)
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // refuses paths outside of dir
	if err != nil {
		return err
	}
	defer root.Close()
	for t := tar.NewReader(z); ; {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if err := unpackEntry(root, header, t); err != nil {
			return err
		}
	}
}

func unpackEntry(root *os.Root, header *tar.Header, content io.Reader) error {
	name := filepath.FromSlash(header.Name)
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeReg:
		file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, header.FileInfo().Mode().Perm())
		if err != nil {
			return err
		}
		_, err = io.Copy(file, content)
		return errors.Join(err, file.Close())
	case tar.TypeSymlink:
		target := filepath.FromSlash(header.Linkname)
		inside := filepath.IsLocal(filepath.Join(filepath.Dir(name), target))
		if inside && !filepath.IsAbs(target) {
			return root.Symlink(target, name)
		}
	}
	return fmt.Errorf("%s is not a file, a directory or a link within the archive", header.Name)
}

// release is an archive of a program's official release.
type release struct {
	name, version string // for messages

	folder string // URL of the folder with the archive
	file   string // name of the archive, .tar.gz or .zip; empty: there is none for this system
	sums   string // name of the file with the SHA-256, alone or in a list of files
	hint   string // how to avoid the download

	// check reports why an unpacked release does not work. nil means that it does.
	check func(ctx context.Context, home string) error
}

// installOnce installs the release in home, unless it is there and works. Of several processes, one installs and the
// others wait.
func (r release) installOnce(ctx context.Context, home string, progress io.Writer) error {
	installed := func() bool { return r.check(ctx, home) == nil }
	install := func() error { return r.install(ctx, home, progress) }
	if err := installOnce(ctx, home, r.name, progress, installed, install); err != nil {
		return fmt.Errorf("download %s %s: %w", r.name, r.version, err)
	}
	return nil
}

// install downloads the release to home and verifies it. A failure leaves nothing behind.
func (r release) install(ctx context.Context, home string, progress io.Writer) error {
	if r.file == "" {
		return fmt.Errorf("no archive is available for %s on %s", runtime.GOOS, runtime.GOARCH)
	}
	work := home + ".part"
	if err := errors.Join(os.RemoveAll(work), os.Mkdir(work, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(work)

	d := download{
		url: r.folder + "/" + r.file, sums: r.folder + "/" + r.sums, file: filepath.Join(work, r.file), progress: progress,
	}
	fmt.Fprintf(progress, "downloading %s %s, once; %s\n", r.name, r.version, r.hint)
	if err := d.run(ctx); err != nil {
		return err
	}
	fmt.Fprintf(progress, "unpacking %s %s into %s\n", r.name, r.version, home)
	unpacked := filepath.Join(work, "unpacked")
	if err := unpack(ctx, d.file, unpacked); err != nil {
		return fmt.Errorf("unpack %s: %w", r.file, err)
	}
	entries, err := os.ReadDir(unpacked)
	if err != nil {
		return err
	}
	if len(entries) != 1 { // an archive contains one folder, whose name varies
		return fmt.Errorf("%s contains %d directories instead of one", r.file, len(entries))
	}
	inner := filepath.Join(unpacked, entries[0].Name())
	if err := r.check(ctx, inner); err != nil {
		return fmt.Errorf("%s contains no working %s %s: %w", r.file, r.name, r.version, err)
	}
	return errors.Join(os.RemoveAll(home), os.Rename(inner, home))
}

// report shows the progress of a long operation: as a bar on a terminal, otherwise as a line at intervals.
type report struct {
	to       io.Writer
	total    int64
	bar      *progressbar.ProgressBar // nil without a terminal
	interval time.Duration            // minimum time between updates
	next     time.Time                // time of the next update
}

const (
	barInterval  = 200 * time.Millisecond
	lineInterval = 10 * time.Second
)

// descriptionWidth keeps the bar within a terminal of 100 columns.
const descriptionWidth = 40

func newReport(to io.Writer, total int64) *report {
	r := &report{to: to, total: total, interval: lineInterval}
	if file, ok := to.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		r.interval = barInterval
		r.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(to), progressbar.OptionSetWidth(24),
			progressbar.OptionSetElapsedTime(true), progressbar.OptionSetPredictTime(false))
	}
	r.next = time.Now().Add(r.interval)
	return r
}

func (r *report) line(text string) { fmt.Fprintln(r.to, text) }

// show updates the progress if the interval has passed. text describes the current step.
func (r *report) show(done int64, text string) {
	now := time.Now()
	if now.Before(r.next) {
		return
	}
	r.next = now.Add(r.interval)
	text, _, _ = strings.Cut(text, " (from ") // cuts pip's list of the packages that require this one
	if r.total > 0 {
		done = min(done, r.total-1) // the total may be an estimate
	}
	switch {
	case r.bar != nil:
		r.bar.Describe(fmt.Sprintf("%-*.*s", descriptionWidth, descriptionWidth, text))
		_ = r.bar.Set64(done)
	case r.total > 0:
		r.line(fmt.Sprintf("  %d of about %d MB: %.100s", done>>20, r.total>>20, text))
	default:
		r.line(fmt.Sprintf("  %d MB: %.100s", done>>20, text))
	}
}

func (r *report) close() {
	if r.bar != nil {
		_ = r.bar.Clear()
	}
}
