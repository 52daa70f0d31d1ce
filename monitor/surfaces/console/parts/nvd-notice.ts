/** What the terms of the vulnerability database require of every page that shows its records. */
export const nvdNotice = 'This product uses the NVD API but is not endorsed or certified by the NVD.';
