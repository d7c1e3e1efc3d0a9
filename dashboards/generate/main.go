// Command generate writes the dashboards, with all panels of each in the form that Grafana reads. What several panels
// or dashboards share is declared once.
package main

import (
	"bytes"
	"encoding/json"
	"log"
	"os"
)

// files are the dashboards by the name of their file.
var files = map[string]dashboard{
	"booth.json": booth, "gtc-demo.json": demo, "benchmarks.json": benchmarks, "routers.json": routers,
}

func main() {
	for name, d := range files {
		if err := os.WriteFile(name, encode(d), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

func encode(d dashboard) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d.json()); err != nil {
		panic(err) // a type that JSON has no form for
	}
	return text.Bytes()
}
