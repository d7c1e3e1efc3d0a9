export { ExportButton, type ExportFile } from './ExportButton';
