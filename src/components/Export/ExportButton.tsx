import { memo, useEffect, useRef, useState } from 'react';

import { Button, Dropdown, Menu } from '@grafana/ui';

import { asProblem } from '../../client';
import { fileName, save, type Format } from '../../lib/save';
import { LINE, stylesOf } from '../../lib/styles';

/** A file to export. */
export interface ExportFile {
  /** Its content, as the menu shows it: "Comparison as CSV". */
  label: string;
  /** The part of its name that describes its content: "comparison". */
  of: string;
  format: Format;
  /** Builds the text. Nothing is read before it is called. It ends when the signal is aborted. */
  text(signal: AbortSignal): string | Promise<string>;
}

interface ExportButtonProps {
  /** The accessible name of the button: "Export the comparison". */
  label: string;
  files: ExportFile[];
  /** The addresses of files that the server makes, by their label. */
  links?: Record<string, string>;
  disabled?: boolean;
}

/** Gives what is on the screen as a file. What fails is said beside the button, until the next attempt. */
export const ExportButton = memo(function ExportButton({ label, files, links = {}, disabled }: ExportButtonProps) {
  const styles = useStyles();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const leaving = useRef<AbortController>();
  useEffect(() => () => leaving.current?.abort(), []);
  const give = async ({ of, format, text }: ExportFile) => {
    const { signal } = (leaving.current = new AbortController());
    setBusy(true);
    setProblem(undefined);
    try {
      const made = await text(signal);
      if (!signal.aborted) {
        save(made, fileName(of, format, new Date()), format);
      }
    } catch (error) {
      setProblem(asProblem(error).message);
    }
    setBusy(false);
  };
  const menu = () => (
    <Menu>
      {files.map((file) => (
        <Menu.Item key={file.label} label={file.label} icon="file-alt" onClick={() => void give(file)} />
      ))}
      {Object.entries(links).map(([words, url]) => (
        <Menu.Item key={words} label={words} icon="file-alt" url={url} role="menuitem" target="_self" />
      ))}
    </Menu>
  );
  return (
    <div className={styles.export}>
      <Dropdown overlay={menu} placement="bottom-end">
        <Button
          variant="secondary"
          size="sm"
          icon={busy ? 'spinner' : 'download-alt'}
          aria-label={label}
          aria-busy={busy}
          disabled={disabled || busy}
        >
          {busy ? 'Exporting…' : 'Export'}
        </Button>
      </Dropdown>
      {problem && (
        <span role="alert" className={styles.problem}>
          Export failed: {problem}
        </span>
      )}
    </div>
  );
});

const useStyles = stylesOf((theme) => ({
  export: {
    ...LINE,
    gap: theme.spacing(0.5, 1),
    '@media print': { display: 'none' },
  },
  problem: { color: theme.colors.error.text },
}));
