import type { Vendor } from '../../../vendor';
import type { Figures } from '../figures';
import { glossary, type Term } from './glossary';
import { readOn } from './links';
import { publishedFigures } from './published';
import { questionGroups } from './questions';
import { screens, type Screen } from './screens';
import { pitch, takeaways, type Takeaway } from './story';
import type { Paragraph, QuestionGroup, Reference } from './types';
import { visitors, type Visitor } from './visitors';

/** Those of the guide's texts that depend on the vendor, wholly or in part. */
export interface Content {
  /** The thirty seconds, without the vendor's part, which stands before or after it. */
  pitch: Paragraph[];
  vendorPitch: string;
  visitors: Visitor[];
  takeaways: Takeaway[];
  story: Vendor['story'];
  screens: Screen[];
  groups: QuestionGroup[];
  glossary: Term[];
  readOn: Reference[];
  /** Figures that texts quote and that do not change. */
  published: Figures;
}

/** The guide as it is told under one vendor. */
export function contentOf(vendor: Vendor): Content {
  return {
    pitch: pitch(vendor),
    vendorPitch: vendor.pitch,
    visitors: visitors(vendor),
    takeaways: takeaways(vendor),
    story: vendor.story,
    screens,
    groups: questionGroups(vendor),
    glossary: glossary(vendor),
    readOn: readOn(vendor),
    published: publishedFigures(vendor),
  };
}
