import type { PropsWithChildren, ReactElement } from 'react';
import { render, screen } from '@testing-library/react';
import { MemoryRouter, useLocation } from 'react-router-dom';

import { ClientProvider, type Client } from '../client';

function Address() {
  const { pathname, search, hash } = useLocation();
  return (
    <span data-testid="address" hidden>
      {`${pathname}${search}${hash}`}
    </span>
  );
}

/** Renders an element with a client and, where it has an address, in a router at that address. */
export function renderWith<C extends Client>(client: C, element: ReactElement, address?: string) {
  const wrapper = ({ children }: PropsWithChildren) => {
    const page = <ClientProvider client={client}>{children}</ClientProvider>;
    return address === undefined ? (
      page
    ) : (
      <MemoryRouter initialEntries={[address]} future={{ v7_startTransition: true, v7_relativeSplatPath: true }}>
        {page}
        <Address />
      </MemoryRouter>
    );
  };
  return { client, ...render(element, { wrapper }) };
}

/** Returns the current address of the router. */
export const address = () => screen.getByTestId('address').textContent;

/** Returns the text of each element. */
export const texts = (elements: ArrayLike<Element>) => Array.from(elements, ({ textContent }) => textContent);
