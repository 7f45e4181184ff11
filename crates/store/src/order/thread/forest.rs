//! A forest that links and cuts, and says whether a link would make a loop (RFC 5256 §3, steps 1.A and 1.B).
//!
//! A node may be linked under another when it has no parent, so a loop arises exactly when the root above the new parent is the node
//! itself. Walking up would make a long chain of replies quadratic, which anyone can send; here it costs `log n`, amortized: the
//! link-cut trees of Sleator and Tarjan (A Data Structure for Dynamic Trees, 1983; with splay trees, 1985), for rooted trees, which
//! need no reversal. A node without children, as most are when they are linked, costs nothing.

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// The forest. Nodes are numbers from 0 in the order in which they were made; every number passed in is one of these.
#[derive(Default)]
pub(super) struct Forest {
    nodes: Vec<Node>,
}

struct Node {
    /// In the forest.
    parent: u32,
    children: u32,
    /// In the splay tree of its path: the parent, or the node above the top of the path when this is the root of the splay tree.
    up: u32,
    /// Towards the root, and away from it.
    side: [u32; 2],
}

impl Forest {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// A new node alone.
    pub(super) fn add(&mut self) -> u32 {
        let number = self.nodes.len();
        self.nodes.push(Node { parent: NONE, children: 0, up: NONE, side: [NONE; 2] });
        u32::try_from(number).unwrap_or(NONE)
    }

    /// The parent of a node, or [`NONE`].
    pub(super) fn parent(&self, node: u32) -> u32 {
        self.nodes[node as usize].parent
    }

    /// Makes `parent` the parent of `node`, which must have none, unless that makes a loop.
    pub(super) fn link(&mut self, node: u32, parent: u32) {
        debug_assert_eq!(self.parent(node), NONE, "a node is cut before it is linked anew");
        let is_loop = node == parent || self.nodes[node as usize].children > 0 && self.root(parent) == node;
        if is_loop {
            return;
        }
        self.splay(node);
        self.nodes[node as usize].up = parent;
        self.nodes[node as usize].parent = parent;
        self.nodes[parent as usize].children += 1;
    }

    /// Takes a node, with all below it, from its parent.
    pub(super) fn cut(&mut self, node: u32) {
        let parent = std::mem::replace(&mut self.nodes[node as usize].parent, NONE);
        if parent == NONE {
            return;
        }
        self.nodes[parent as usize].children -= 1;
        self.access(node);
        let above = std::mem::replace(&mut self.nodes[node as usize].side[0], NONE);
        if above != NONE {
            self.nodes[above as usize].up = NONE;
        }
    }

    /// The root of the tree that a node is in.
    fn root(&mut self, node: u32) -> u32 {
        self.access(node);
        let mut root = node;
        while self.nodes[root as usize].side[0] != NONE {
            root = self.nodes[root as usize].side[0];
        }
        self.splay(root);
        root
    }

    /// Makes the path from the root to `node` one splay tree, with `node` as its root and nothing below it.
    fn access(&mut self, node: u32) {
        let mut below = NONE;
        let mut at = node;
        while at != NONE {
            self.splay(at);
            self.nodes[at as usize].side[1] = below;
            below = at;
            at = self.nodes[at as usize].up;
        }
        self.splay(node);
    }

    /// On which side of the node above it in the same splay tree a node hangs.
    fn side_of(&self, node: u32) -> Option<usize> {
        let above = self.nodes.get(self.nodes[node as usize].up as usize)?;
        above.side.iter().position(|side| *side == node)
    }

    fn splay(&mut self, node: u32) {
        while let Some(side) = self.side_of(node) {
            let above = self.nodes[node as usize].up;
            if let Some(above_side) = self.side_of(above) {
                self.rotate(if above_side == side { above } else { node });
            }
            self.rotate(node);
        }
    }

    /// Moves a node that has one above it in its splay tree up by one.
    fn rotate(&mut self, node: u32) {
        let Some(side) = self.side_of(node) else { return };
        let above = self.nodes[node as usize].up;
        let top_side = self.side_of(above);
        let top = self.nodes[above as usize].up;
        let inner = self.nodes[node as usize].side[1 - side];
        self.nodes[above as usize].side[side] = inner;
        if inner != NONE {
            self.nodes[inner as usize].up = above;
        }
        self.nodes[node as usize].side[1 - side] = above;
        self.nodes[above as usize].up = node;
        self.nodes[node as usize].up = top;
        if let Some(top_side) = top_side {
            self.nodes[top as usize].side[top_side] = node;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parents, and walking up.
    struct Naive(Vec<u32>);

    impl Naive {
        fn link(&mut self, node: u32, parent: u32) {
            let mut above = parent;
            while above != NONE {
                if above == node {
                    return;
                }
                above = self.0[above as usize];
            }
            self.0[node as usize] = parent;
        }
    }

    proptest! {
        #[test]
        fn as_walking_up_does(steps in prop::collection::vec((0u32..20, 0u32..20, any::<bool>()), 0..200)) {
            let mut forest = Forest::default();
            for _ in 0..20 {
                forest.add();
            }
            let mut naive = Naive(vec![NONE; 20]);
            for (node, parent, cut) in steps {
                if cut || forest.parent(node) != NONE {
                    forest.cut(node);
                    naive.0[node as usize] = NONE;
                }
                forest.link(node, parent);
                naive.link(node, parent);
                for node in 0..20 {
                    prop_assert_eq!(forest.parent(node), naive.0[node as usize]);
                }
            }
        }
    }

    #[test]
    fn a_long_chain_built_from_either_end() {
        const LENGTH: u32 = 200_000;
        for upwards in [false, true] {
            let mut forest = Forest::default();
            (0..LENGTH).for_each(|_| {
                forest.add();
            });
            let nodes: Vec<u32> = if upwards { (1..LENGTH).rev().collect() } else { (1..LENGTH).collect() };
            for node in nodes {
                forest.link(node, node - 1);
            }
            forest.link(0, LENGTH - 1);
            assert_eq!(forest.parent(0), NONE, "a loop");
            assert_eq!(forest.parent(LENGTH - 1), LENGTH - 2);
        }
    }
}
