import './publicPath';
import './reset';

import { createRoot } from 'react-dom/client';

import { Standalone } from './Standalone';

const root = document.getElementById('root');
if (root) {
  createRoot(root).render(<Standalone />);
}
