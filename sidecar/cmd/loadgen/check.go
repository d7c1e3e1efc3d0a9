package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/cluster/kubernetes"
	"kvbooth/sidecar/loadgen/store"
)

// check reads the files that a start reads in addition to the configuration, and prints what a start would report but
// not refuse. It writes nothing. The error is a notStarted.
func check(ctx context.Context, conf *config.Config, stdout io.Writer) error {
	notes, err := checkFiles(ctx, conf)
	if err != nil {
		return notStarted{err}
	}
	fmt.Fprintln(stdout, "The configuration is valid.")
	for _, note := range notes {
		fmt.Fprintln(stdout, note)
	}
	if conf.CheckTarget {
		err = checkTargets(ctx, conf, stdout)
	}
	if conf.CheckCluster {
		err = errors.Join(err, checkCluster(ctx, conf, stdout))
	}
	return err
}

func checkFiles(ctx context.Context, conf *config.Config) (notes []string, err error) {
	texts, err := openTexts(ctx, conf, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if texts != nil {
		notes = corpusNotes(texts.Status())
	}
	if err := conf.Members.Access().CheckKey(); err != nil {
		return nil, err
	}
	for _, c := range []*config.Config{conf, conf.ForTwin()} {
		if c == nil || c.Mode.Driver != "kubernetes" {
			continue
		}
		k := c.Mode.Kubernetes
		if _, _, err := kubernetes.Connect(k.Kubeconfig, k.Context, k.Namespace); err != nil {
			return nil, err
		}
	}
	for _, path := range conf.Output {
		if err := checkWritable(path); err != nil {
			return nil, conf.OutputFormats().Unwritable(path, err)
		}
	}
	return notes, checkData(ctx, conf)
}

// corpusNotes lists the parts of a corpus that are not used.
func corpusNotes(s api.CorpusStatus) (notes []string) {
	if s.Problem != "" { // of a bucket: until it is readable, a start uses the built-in articles
		notes = append(notes, fmt.Sprintf("The corpus %s cannot be read now, and the built-in articles are used "+
			"until it can: %s.", s.Source, s.Problem))
	}
	if s.Skipped > 0 {
		notes = append(notes, fmt.Sprintf("Texts of the corpus that are skipped: %d. The first one is %s: %s.",
			s.Skipped, s.SkippedItems[0].Name, s.SkippedItems[0].Reason))
	}
	return notes
}

// checkWritable returns why a file could not be written, without creating it.
func checkWritable(path string) error {
	if kubernetes.IsConfigMap(path) {
		return kubernetes.WriteConfigMap(path, nil, "All")
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return errors.New("it is a directory")
	case err == nil:
		f, err := os.OpenFile(filepath.Clean(path), os.O_WRONLY, 0)
		if err != nil {
			return errors.Unwrap(err)
		}
		return f.Close()
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return errors.New("its directory does not exist")
	}
	return nil
}

// checkData reads the baselines in the data directory, and requires that the default baseline is one of them or a
// built-in one, unless it is empty or [api.ThisTarget]. The directory need not exist; nothing is made or written. The
// error is an [api.FieldError] for a data_dir that is not a directory and for an unknown default.
func checkData(ctx context.Context, conf *config.Config) error {
	info, err := os.Stat(conf.DataDir)
	if err == nil && !info.IsDir() || err != nil && !errors.Is(err, os.ErrNotExist) {
		return api.Refuse("data_dir", conf.DataDir, "a directory, or one that can be made")
	}
	dir := conf.DataDir
	if err != nil {
		dir = "" // it does not exist yet
	}
	all, err := knownBaselines(ctx, dir)
	if err != nil {
		return err
	}
	name := conf.Baseline
	if _, ok := all[name]; ok || name == "" || name == api.ThisTarget {
		return nil
	}
	return api.Refuse("default_baseline", name,
		fmt.Sprintf("%q, or a baseline in data_dir or built in: %s; import another one first", api.ThisTarget,
			baselineNames(all)))
}

// knownBaselines returns the built-in baselines and those in a data directory, by name. An empty directory name stands
// for none. The first baseline of a name is used.
func knownBaselines(ctx context.Context, dir string) (map[string]api.Baseline, error) {
	list := baseline.Builtin()
	if dir != "" {
		kept, err := store.ReadBaselines(ctx, dir)
		if err != nil {
			return nil, fmt.Errorf("data_dir: cannot read the baselines in %s: %w", dir, err)
		}
		list = append(list, kept...)
	}
	all := make(map[string]api.Baseline, len(list))
	for _, b := range list {
		if _, ok := all[b.Name]; !ok {
			all[b.Name] = b
		}
	}
	return all, nil
}

// baselineNames lists the names of baselines in order.
func baselineNames(all map[string]api.Baseline) string {
	return strings.Join(slices.Sorted(maps.Keys(all)), ", ")
}
