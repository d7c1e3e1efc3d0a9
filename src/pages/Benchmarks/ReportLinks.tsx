import type { PropsWithChildren } from 'react';

import { LinkButton, type ComponentSize } from '@grafana/ui';

import type { ReportFormat } from '../../client';
import { LINE, stylesOf } from '../../lib/styles';

const names = { md: 'Markdown', tsv: 'TSV', json: 'JSON' } as const;

interface ReportLinksProps {
  what: 'Report' | 'Comparison';
  /** The name of the files, without their endings. */
  file: string;
  size: ComponentSize;
  variant: 'primary' | 'secondary';
  address(format: ReportFormat): string;
}

/** A report as a page of its own, and as files in each other format. */
export function ReportLinks(props: PropsWithChildren<ReportLinksProps>) {
  const { what, file, size, variant, address, children } = props;
  const styles = useStyles();
  return (
    <div className={styles.links} role="group" aria-label={what}>
      <LinkButton variant={variant} size={size} icon="file-alt" href={address('html')} target="_blank" rel="noreferrer">
        Open the {what.toLowerCase()}
      </LinkButton>
      {(['md', 'tsv', 'json'] as const).map((format) => (
        // Grafana would take a link without a target for one of its own pages.
        <LinkButton
          key={format}
          variant="secondary"
          fill="text"
          size={size}
          icon="download-alt"
          href={address(format)}
          target="_self"
          download={`${file}.${format}`}
          aria-label={`${what} as ${names[format]}`}
        >
          {names[format]}
        </LinkButton>
      ))}
      {children}
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  links: { ...LINE, gridColumn: '1 / -1', gap: theme.spacing(1) },
}));
