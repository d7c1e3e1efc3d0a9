import { memo } from 'react';

import { Badge, Button } from '@grafana/ui';

import type { SimulationProfile } from '../../client';
import { Choice } from '../../components/Choice';
import { number, percent } from '../../lib/format';
import { COLUMN, LINE, stylesOf } from '../../lib/styles';
import type { Question } from './useQuestion';

interface PresetsProps {
  question: Question;
  profiles: SimulationProfile[];
  onPreset(name: string): void;
  onProfile(name: string): void;
  onReset(): void;
}

/** The presets: common questions on each profile. */
export const Presets = memo(function Presets({ question, profiles, onPreset, onProfile, onReset }: PresetsProps) {
  const styles = useStyles();
  const { profile, preset, changed } = question;
  return (
    <div className={styles.presets}>
      <div className={styles.row} role="group" aria-label="Presets">
        {profile.presets.map(({ name, title, description }) => (
          <Button
            key={name}
            size="sm"
            variant={name === preset?.name ? 'primary' : 'secondary'}
            aria-pressed={name === preset?.name}
            tooltip={description}
            onClick={() => onPreset(name)}
          >
            {title}
          </Button>
        ))}
      </div>
      <div className={styles.row} aria-live="polite">
        <span>{preset?.description}</span>
        {changed.length > 0 && (
          <>
            <b>{changed.length === 1 ? '1 setting differs' : `${changed.length} settings differ`} from the preset.</b>
            <Button variant="secondary" fill="text" size="sm" icon="history" onClick={onReset}>
              Reset all
            </Button>
          </>
        )}
      </div>
      <Profile profile={profile} profiles={profiles} onProfile={onProfile} />
    </div>
  );
});

type ProfileProps = Pick<PresetsProps, 'profiles' | 'onProfile'> & { profile: SimulationProfile };

/** The origin of the simulated timing, and its error against the recording. */
function Profile({ profile, profiles, onProfile }: ProfileProps) {
  const styles = useStyles();
  const broken = profiles.filter(({ error }) => error !== undefined);
  return (
    <>
      <div className={styles.row}>
        <Choice
          label="GPU profile"
          options={profiles
            .filter(({ error }) => error === undefined)
            .map(({ name, title, calibrated, source }) => ({
              value: name,
              label: title,
              description: `${source}, ${calibrated ? 'calibrated' : 'not calibrated'}`,
            }))}
          value={profile.name}
          onChange={onProfile}
        />
        <Badge
          color={profile.calibrated ? 'blue' : 'orange'}
          text={profile.calibrated ? 'Calibrated' : 'Not calibrated'}
          tooltip={profile.basis}
        />
      </div>
      <p className={styles.basis}>
        {profile.basis} {errorText(profile)}
      </p>
      {broken.map(({ name, source, error }) => (
        <p key={`${name} ${source}`} className={styles.basis}>
          The profile {source} cannot be used: {error}
        </p>
      ))}
    </>
  );
}

/** Describes the error of the profile against the recorded table; empty where it is not computed. */
export function errorText({ errors }: Pick<SimulationProfile, 'errors'>): string {
  const parts = [
    ['TTFT p50', errors?.ttft_p50],
    ['TTFT p95', errors?.ttft_p95],
    ['TPOT p50', errors?.tpot_p50],
    ['throughput', errors?.tokens_per_second],
  ] as const;
  const times = parts.flatMap(([name, error]) => (error === undefined ? [] : [`${name} ${percent(error)}`]));
  const hits = errors?.hit_ratio;
  const points = hits === undefined ? [] : [`hit rate ${number(100 * hits, 1)} points`];
  const all = [...times, ...points];
  return all.length > 0 ? `Mean error against the recorded table: ${all.join(', ')}.` : '';
}

const useStyles = stylesOf((theme) => ({
  presets: { ...COLUMN, gap: theme.spacing(1) },
  row: {
    ...LINE,
    gap: theme.spacing(0.5, 1),
    minWidth: 0,
    '& > *': { maxWidth: '100%' },
  },
  basis: {
    ...theme.typography.bodySmall,
    maxWidth: '110ch',
    margin: 0,
    color: theme.colors.text.secondary,
    textWrap: 'pretty',
  },
}));
