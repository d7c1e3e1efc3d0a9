package httpd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/google/renameio/v2/maybe"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// modeState is a mode with a speculation, in the state file too.
type modeState struct {
	Mode        api.Mode        `json:"mode"`
	Speculation api.Speculation `json:"speculation"`
}

// offers are all that the cluster can be switched to.
func offers(p sim.Profile) (all []modeState) {
	for _, kind := range []api.Speculation{api.SpeculationNotRecorded, api.SpeculationOff, api.SpeculationDraft, api.SpeculationEagle3} {
		if _, ok := p.Speculation[kind]; !ok {
			continue
		}
		for _, mode := range []api.Mode{api.ModeKV, api.ModeRoundRobin, api.ModeLeastLoaded} {
			all = append(all, modeState{mode, kind})
		}
	}
	return all
}

// check gives an *[api.FieldError] for what the cluster does not offer.
func (m modeState) check(p sim.Profile) error {
	all := offers(p)
	if slices.Contains(all, m) {
		return nil
	}
	if !slices.ContainsFunc(all, func(o modeState) bool { return o.Mode == m.Mode }) {
		return &api.FieldError{Field: "mode", Value: fmt.Sprintf("%.40q", m.Mode), Allowed: distinct(all, func(o modeState) string { return string(o.Mode) })}
	}
	return &api.FieldError{Field: "speculation", Value: fmt.Sprintf("%.40q", m.Speculation), Allowed: distinct(all, func(o modeState) string { return string(o.Speculation) })}
}

// distinct lists the values of a field of the offers, each once.
func distinct(all []modeState, field func(modeState) string) string {
	var list string
	for i, o := range all {
		if v := field(o); slices.IndexFunc(all, func(o modeState) bool { return field(o) == v }) == i {
			if list != "" {
				list += ", "
			}
			list += v
		}
	}
	return list
}

// restore takes mode and speculation from the state file, if there is one.
func (o *Options) restore() error {
	if o.StateFile == "" {
		return nil
	}
	data, err := os.ReadFile(o.StateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var m modeState
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err = d.Decode(&m); err == nil {
			err = m.check(o.Cluster.Profile)
		}
	}
	if err != nil {
		return fmt.Errorf("the state file %s cannot be used (without it, the cluster starts as configured): %w", o.StateFile, err)
	}
	o.Cluster.Mode, o.Cluster.Speculation = m.Mode, m.Speculation
	return nil
}

// save writes the state file, which appears whole or not at all.
func (m modeState) save(path string) error {
	if path == "" {
		return nil
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return maybe.WriteFile(path, append(data, '\n'), 0o600)
}
