package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

type (
	// playlist is one of Grafana's, as its API has it. Grafana provisions none from files, and plays dashboards alone.
	playlist struct {
		Name     string         `json:"name"`
		Interval string         `json:"interval"`
		Items    []playlistItem `json:"items"`
	}
	playlistItem struct {
		Type  string `json:"type"`
		Value string `json:"value"`
	}
)

var boothPlaylist = playlist{Name: "KV Booth", Interval: "1m", Items: []playlistItem{
	{"dashboard_by_uid", "kvbooth-booth"}, {"dashboard_by_uid", "kvbooth-routers"},
}}

// addPlaylist makes the playlist in a Grafana that has none of its name.
func addPlaylist(ctx context.Context, grafana string) error {
	var existing []playlist
	if err := askGrafana(ctx, http.MethodGet, grafana, nil, &existing); err != nil {
		return err
	}
	if slices.ContainsFunc(existing, func(p playlist) bool { return p.Name == boothPlaylist.Name }) {
		return nil
	}
	body, err := json.Marshal(boothPlaylist)
	if err != nil {
		return err
	}
	return askGrafana(ctx, http.MethodPost, grafana, body, nil)
}

// askGrafana calls the API of playlists, and decodes the answer unless it is ignored.
func askGrafana(ctx context.Context, method, grafana string, body []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // a Grafana that has just started is slow
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, grafana+"/api/playlists", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s playlists: %s: %s", method, response.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
