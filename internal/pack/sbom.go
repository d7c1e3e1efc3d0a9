package pack

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ProgramBill writes the CycloneDX document of the modules that are linked into a Go program, as cyclonedx-gomod reads
// them from it. version is that of the program, or "" for the one that it has itself. The same program and the same
// date give the same bytes.
func ProgramBill(ctx context.Context, to, program, version string, date time.Time) (Archive, error) {
	command := []string{
		"go", "tool", "-modfile=tools/cyclonedx/go.mod", "cyclonedx-gomod", "bin", "-json", "-noserial", "-std",
	}
	if version != "" {
		command = append(command, "-version", version)
	}
	return bill(ctx, to, filepath.Base(program), date, append(command, program)...)
}

// FrontEndBill writes the CycloneDX document of the npm packages of package.json and what they require, without those
// that only build and test. The same lock file, npm and date give the same bytes.
func FrontEndBill(ctx context.Context, to, name string, date time.Time) (Archive, error) {
	// One of the packages asks for a React of its own, which npm otherwise reports instead of the list.
	return bill(ctx, to, name, date, "npm", "sbom", "--sbom-format=cyclonedx", "--omit=dev", "--package-lock-only",
		"--legacy-peer-deps")
}

// bill writes what a command prints, with the name of the component, and with the date in place of the clock's and of a
// random serial number.
func bill(ctx context.Context, to, name string, date time.Time, command ...string) (Archive, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return Archive{}, fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	if text, err = reproducible(text, name, date); err != nil {
		return Archive{}, fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	if err := os.WriteFile(to, text, 0o644); err != nil {
		return Archive{}, err
	}
	return Describe(to)
}

// reproducible returns a CycloneDX document without what differs in each run.
func reproducible(text []byte, name string, date time.Time) ([]byte, error) {
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	metadata, isObject := document["metadata"].(map[string]any)
	component, hasComponent := metadata["component"].(map[string]any)
	if !isObject || !hasComponent || document["bomFormat"] != "CycloneDX" {
		return nil, fmt.Errorf("no CycloneDX document: %.100s", text)
	}
	delete(document, "serialNumber")
	tools, _ := metadata["tools"].([]any)
	for _, tool := range tools {
		if described, isObject := tool.(map[string]any); isObject {
			delete(described, "hashes") // of the tool as it was built here
		}
	}
	metadata["timestamp"] = date.UTC().Format(time.RFC3339)
	component["name"] = name
	return json.MarshalIndent(document, "", " ")
}
