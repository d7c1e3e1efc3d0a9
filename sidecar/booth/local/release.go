package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// release is an archive of a program's official release.
type release struct {
	title  string // name and version, for messages
	folder string // URL of the folder with the archive
	file   string // name of the archive, .tar.gz or .zip
	sums   string // URL of the published SHA-256, alone or in a list of files
	hint   string // how to avoid the download

	// check reports why an unpacked release does not work. nil means that it does.
	check func(ctx context.Context, home string) error
}

// install downloads the release to home and verifies it. A failure leaves nothing behind.
func (r release) install(ctx context.Context, home string, progress io.Writer) error {
	work := home + ".part"
	if err := errors.Join(os.RemoveAll(work), os.Mkdir(work, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(work)

	d := download{url: r.folder + "/" + r.file, sums: r.sums, file: filepath.Join(work, r.file), progress: progress}
	fmt.Fprintf(progress, "downloading %s, once; %s\n", r.title, r.hint)
	if err := d.run(ctx); err != nil {
		return err
	}
	fmt.Fprintf(progress, "unpacking %s into %s\n", r.title, home)
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
		return fmt.Errorf("%s contains no working %s: %w", r.file, r.title, err)
	}
	return errors.Join(os.RemoveAll(home), os.Rename(inner, home))
}
