import { render, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { violations } from '../../test/axe';
import { Section } from './Section';

const show = () =>
  render(
    <Section
      title="Workers"
      info="One card per worker. The numbers come from Prometheus."
      actions={<a href="#all">All</a>}
    >
      <p>Three of them</p>
    </Section>
  );

const about = () => screen.getByRole('button', { name: 'About “Workers”' });

describe('a section', () => {
  it('is a region with the name of its heading', () => {
    show();
    const region = within(screen.getByRole('region', { name: 'Workers' }));
    expect(region.getByRole('heading', { level: 2, name: 'Workers' })).toBeInTheDocument();
    expect(region.getByText('Three of them')).toBeInTheDocument();
    expect(region.getByRole('link', { name: 'All' })).toBeInTheDocument();
  });

  it('shows its description on request, and hides it on Escape', async () => {
    const user = userEvent.setup();
    const { container } = show();
    expect(screen.queryByText(/come from Prometheus/)).not.toBeInTheDocument();
    await user.click(about());
    expect(screen.getByText(/come from Prometheus/)).toBeInTheDocument();
    expect(about()).toHaveAttribute('aria-expanded', 'true');
    expect(await violations(container)).toEqual([]);
    await user.keyboard('{Escape}');
    expect(screen.queryByText(/come from Prometheus/)).not.toBeInTheDocument();
    expect(about()).toHaveFocus();
    await user.keyboard('{Enter}'); // by keyboard, too
    expect(screen.getByText(/come from Prometheus/)).toBeInTheDocument();
  });
});
