/** What all parts of the page share. */
import type { SharedModel } from "./engine/format";
import type { Person } from "./engine/recommender";
import { foldIn } from "./engine.js";
import type { Items } from "./items";
import type { State } from "./state";
import { ratingText } from "./view/stars";
import { t } from "./view/texts";
import type { Mark } from "./store/store";

export class Context {
  private folded: Person | null = null;

  constructor(
    public model: SharedModel,
    readonly items: Items,
    readonly state: State,
  ) {
    state.onChange(() => (this.folded = null));
  }

  /** Go on with another table of the same items. */
  renew(model: SharedModel): void {
    this.model = model;
    this.state.refresh();
  }

  get scale() {
    return this.model.facts.scale;
  }

  /** The person as its ratings are now, folded in once per change. */
  person(): Person {
    return (this.folded ??= foldIn(this.model, this.state.ratings));
  }

  title(item: number): string {
    return this.items.titles[item]!;
  }

  rate(item: number, rating: number): void {
    if (this.state.ratings.get(item) === rating) this.forget(item);
    else this.state.rate(item, rating, t("done.rated", { title: this.title(item), rating: ratingText(this.scale, rating) }));
  }

  forget(item: number): void {
    this.state.forget(item, t("done.removed", { title: this.title(item) }));
  }

  mark(item: number, mark: Mark | null): void {
    this.state.mark(item, mark, t(mark ? `done.${mark}` : "done.back", { title: this.title(item) }));
  }
}
